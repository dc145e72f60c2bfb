# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, on a recorded tree: a change, check mode, idempotence, and the way back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import rdma
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import adapter, server
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

COLLECTIONS = str(Path(rdma.__file__).resolve().parents[2] / ".collections")
RULE = "/etc/udev/rules.d/60-rdma-persistent-naming.rules"
UNIT = "/etc/systemd/system/allreduce-rdma@.service"
LINK = "/etc/systemd/system/sys-subsystem-net-devices-ib0.device.wants/allreduce-rdma@ib0.service"
WANTED = {
    "files": [
        {"path": RULE, "content": "# ours\n"},
        {"path": UNIT, "content": "[Unit]\n"},
        {"path": LINK, "link": UNIT},
    ],
    "values": [
        {"path": "/sys/class/net/ib0/mode", "value": "connected"},
        {"path": "/sys/class/net/ib0/mtu", "value": "65520"},
    ],
}


def run(root, check=False, name="rdma", **options):
    arguments = {"root": str(root), "_ansible_check_mode": check, "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", f"ansible_collections.allreduce.gpu.plugins.modules.{name}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    answer = json.loads(done.stdout)
    json.dumps(answer, ensure_ascii=False).encode()  # Ansible takes no answer that is not UTF-8
    return answer


@pytest.fixture
def root(tmp_path):
    tree(tmp_path, {**server(adapter(0)), RULE: ""})
    (tmp_path / RULE.lstrip("/")).write_bytes(b"# the administrator's, of \xff old\n")
    return tmp_path


def trimmed(place):
    """A recorded tree keeps what was written, where a kernel makes the text."""
    return {path: one.strip() if isinstance(one, bytes) else one for path, one in snapshot(place).items()}


def test_change_and_the_way_back(root):
    before = trimmed(root)
    result = run(root, **WANTED)
    assert result["changed"] and [step["kind"] for step in result["changes"]] == ["file"] * 3 + ["value"] * 2, result
    assert (root / LINK.lstrip("/")).readlink() == Path(UNIT)
    assert (root / "sys/class/net/ib0/mtu").read_text() == "65520"
    assert (root / "var/lib/allreduce/rdma.json").stat().st_mode & 0o777 == 0o600
    assert run(root, state="absent", **WANTED)["changed"] is True
    assert trimmed(root) == before


def test_change_in_check_mode(root):
    before = snapshot(root)
    result = run(root, check=True, **WANTED)
    assert result["changed"] and snapshot(root) == before
    shown = {one["before_header"]: one["after"] for one in result["diff"]}
    assert shown[RULE] == "# ours\n" and "/sys/class/net/ib0/mode: connected\n" in shown["kernel"]


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(root, check):
    run(root, **WANTED)
    before = snapshot(root)
    assert run(root, check, **WANTED)["changed"] is False and snapshot(root) == before


def test_a_record_that_is_not_understood_changes_nothing(root):
    tree(root, {"/var/lib/allreduce/rdma.json": '{"format": 7}'})
    before = snapshot(root)
    result = run(root, **WANTED)
    assert result["failed"] and "has format 7; this release reads 1" in result["msg"]
    assert snapshot(root) == before


def test_what_was_applied_is_measured_until_it_is_put_back(root):
    run(root, applied="d1", **WANTED)
    assert run(root, name="rdma_facts")["applied"] == "d1"
    (root / "sys/class/net/ib0/mtu").write_text("2044")
    assert run(root, name="rdma_facts")["applied"] is None
    run(root, applied="d1", **WANTED)
    run(root, state="absent", applied="d2")
    assert run(root, name="rdma_facts")["applied"] is None
    assert list((root / "run/allreduce/applied").iterdir()) == []
