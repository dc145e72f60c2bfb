# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a toolkit that compiles is laid over the stubs, without a host."""

import pytest

from tests.lab import toolkit


@pytest.mark.parametrize(
    ("nvcc", "laid"),
    [("", 2), ("Built on Cuda compilation tools, release 11.8, V11.8.89\n", 0)],
    ids=["stub", "there"],
)
def test_it_is_laid_once(monkeypatch, nvcc, laid):
    ran = []
    monkeypatch.setattr(toolkit, "podman", lambda *args: ran.append(args) or nvcc)
    monkeypatch.setattr(toolkit.services, "wheels_url", lambda view: f"http://wheels/{view}/")
    toolkit.put("gpu-1")
    assert [args[:2] for args in ran] == [("exec", "gpu-1")] * (1 + laid)
    assert not laid or "--find-links http://wheels/plain/ " in ran[-1][-1]
