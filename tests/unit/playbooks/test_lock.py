# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook lock as a user's CI runs it: no host in reach, nothing written, and what differs is told."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.command import play, write_inventory

REQUEST = {"driver": "535"}


@pytest.fixture
def check(tmp_path):
    """Run playbook lock on two nodes that ask for this; what was locked is REQUEST."""

    def checked(request):
        write_inventory(
            tmp_path,
            {"gpu_nodes": {"hosts": {"gpu-1": None, "gpu-2": None}, "vars": {"gpu_stack_request": request}}},
        )
        planned = resolve({"os": "debian 12", "request": REQUEST})["stack"]
        text = lock.text(lock.renewed(None, [planned]))
        (tmp_path / "inventory" / "stack.lock.yml").write_text(text, encoding="utf-8")
        done = play(tmp_path, "lock")
        assert not done.contacted
        assert done.lock == text
        return done

    return checked


def test_a_lock_that_fits_passes(check):
    done = check(REQUEST)
    assert done.status == 0, done.output


def test_another_request_fails_and_reads_like_a_changelog(check):
    done = check({**REQUEST, "pytorch": "2.12"})
    assert done.status != 0
    assert "gpu-1, gpu-2: - request.pytorch was none and is 2.12" in done.words
    assert "- environments.main.frameworks.pytorch: 2.13.0 -> 2.12.1" in done.words
    assert "does not match the inventory; run the playbook plan" in done.words
    assert [line for line in done.lines if line.startswith("TASK") and len(line) > 80] == []
