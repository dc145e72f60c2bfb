# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a toolkit that compiles is laid over the stubs, without a host."""

import pytest
import yaml

from tests.lab import paths, toolkit, wheels

# As the mirror's stub and the real one of 12.4 say it.
STUB = "Cuda compilation tools, release 12.4, V12.4.131\n"
REAL = f"""\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
{STUB}Build cuda_12.4.r12.4/compiler.34097967_0
"""


@pytest.mark.parametrize(("nvcc", "laid"), [("", 2), (STUB, 2), (REAL, 0)], ids=["none", "stub", "there"])
def test_it_is_laid_once(monkeypatch, nvcc, laid):
    ran = []
    monkeypatch.setattr(toolkit, "podman", lambda *args: ran.append(args) or nvcc)
    monkeypatch.setattr(toolkit.services, "wheels_url", lambda view: f"http://wheels/{view}/")
    toolkit.put("gpu-1", toolkit.CUDA_12_4)
    assert [args[:2] for args in ran] == [("exec", "gpu-1")] * (1 + laid)
    assert not laid or "--find-links http://wheels/plain/ " in ran[-1][-1]


@pytest.mark.parametrize("kit", [toolkit.CUDA_11_8, toolkit.CUDA_12_4], ids=lambda kit: kit.cuda)
def test_its_nccl_is_among_the_wheels_and_fits_a_plan_of_that_cuda(kit):
    """The stubs that it lies over are of the same toolkit."""
    wanted = wheels.get(kit.wheels)
    torch = {one for one in wanted.requirements if one.startswith(("torch==", "tensorflow=="))}
    assert wanted.view == "plain" and kit.nccl in wanted.requirements and len(torch) == 1
    rows = yaml.safe_load((paths.CHECKOUT / "tests/lab/mirror/data/cuda.yml").read_text(encoding="utf-8"))["rows"]
    assert kit.nvcc in [one["components"].get("nvcc") for one in rows if one["release"].startswith(kit.cuda)]
