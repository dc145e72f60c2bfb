# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules as Ansible runs them: in a network namespace for what runs, on a recorded tree for files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import qos
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import (
    INTERFACE,
    spaces,
)
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

COLLECTIONS = str(Path(qos.__file__).resolve().parents[2] / ".collections")
UNIT = "/etc/systemd/system/allreduce-qos@.service"
WANTED = {
    "files": [
        {"path": "/etc/allreduce/qos.json", "content": "{}", "mode": "0600"},
        {"path": UNIT, "content": "[Unit]\n"},
        {"path": "/etc/systemd/system/x.device.wants/allreduce-qos@x.service", "link": UNIT},
    ]
}


@pytest.fixture
def space():
    yield from spaces()


def run(name, check=False, before=(), **options):
    arguments = {"_ansible_check_mode": check, "_ansible_diff": True, **options}
    done = subprocess.run(
        [*before, sys.executable, "-m", f"ansible_collections.allreduce.gpu.plugins.modules.{name}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


def test_there_and_back(tmp_path):
    before = snapshot(tmp_path)
    predicted = run("qos", root=str(tmp_path), check=True, **WANTED)
    assert predicted["changed"] and snapshot(tmp_path) == before
    done = run("qos", root=str(tmp_path), **WANTED)
    assert done["changes"] == predicted["changes"] and len(done["changes"]) == 3
    assert (tmp_path / "etc/allreduce/qos.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / WANTED["files"][2]["path"].lstrip("/")).readlink() == Path(UNIT)
    for check in (True, False):
        again = run("qos", root=str(tmp_path), check=check, **WANTED)
        assert (again["changed"], again["changes"], again["diff"]) == (False, [], [])
    assert run("qos", root=str(tmp_path), state="absent")["changed"] is True
    assert snapshot(tmp_path) == before
    assert run("qos", root=str(tmp_path), state="absent")["changed"] is False


@pytest.mark.parametrize("wrong", [{"path": "/x"}, {"path": "/x", "content": "", "link": "/y"}])
def test_a_file_is_text_or_a_link(tmp_path, wrong):
    assert run("qos", root=str(tmp_path), files=[wrong])["failed"]


def test_a_record_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "var/lib/allreduce").mkdir(parents=True)
    (tmp_path / "var/lib/allreduce/qos.json").write_text('{"format": 9}')
    result = run("qos", root=str(tmp_path), state="absent")
    assert result["failed"] and "has format 9; this release reads 1" in result["msg"]


def test_the_class_table_is_shown(space):
    """In check mode, so that the record of this machine stays as it is."""
    inside = ["ip", "netns", "exec", space.names[0]]
    result = run("qos", check=True, before=inside, interfaces=[INTERFACE])
    (shown,) = [one for one in result["diff"] if one["before_header"] == "interface train0"]
    assert "class a11e:10 prio 0 rate 160mbit ceil 200mbit\n" in shown["after"]
    fact = run("qos_facts", before=inside, probe=True)["ansible_facts"]["gpu_qos"]
    assert fact["tc"] is True and fact["kernel"]["htb"] is True
    assert fact["interfaces"]["train0"]["shaped"]["root"]["kind"] == "noqueue"


def test_what_was_applied_is_noted_until_it_is_put_back(tmp_path):
    """Module qos_facts reads this machine only: tests/scenarios/test_73_qos.py sees that it tells."""
    note = tmp_path / "run/allreduce/applied/qos.json"
    run("qos", root=str(tmp_path), check=True, applied="d1", **WANTED)
    assert not note.exists()
    run("qos", root=str(tmp_path), applied="d1", **WANTED)
    assert json.loads(note.read_text())["digest"] == "d1"
    run("qos", root=str(tmp_path), state="absent", applied="d2")
    assert not note.exists()
