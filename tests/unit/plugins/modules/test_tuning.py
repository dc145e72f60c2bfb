# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules as Ansible runs them, on a recorded tree: a change, check mode, idempotence, and the way back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import tuning
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import SUBJECTS
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server, snapshot

COLLECTIONS = str(Path(tuning.__file__).resolve().parents[2] / ".collections")
UNIT = "/etc/systemd/system/allreduce-tuning.service"
WANTED = {
    "files": [
        {"path": "/etc/sysctl.d/90-allreduce.conf", "content": "vm.swappiness = 10\n"},
        {"path": UNIT, "content": "[Unit]\n", "mode": "0640"},
        {"path": "/etc/systemd/system/multi-user.target.wants/allreduce-tuning.service", "link": UNIT},
    ],
    "values": [
        {"path": "/proc/sys/vm/swappiness", "value": "10"},
        {"path": "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "value": "performance"},
    ],
    "interfaces": ["ens1"],
}


def run(name, root, check=False, **options):
    arguments = {"root": str(root), "_ansible_check_mode": check, "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", f"ansible_collections.allreduce.gpu.plugins.modules.{name}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


@pytest.fixture
def root(tmp_path):
    tree(tmp_path, server())
    return tmp_path


def test_change_and_the_way_back(root):
    before = snapshot(root)
    result = run("tuning", root, **WANTED)
    assert result["changed"] and not result["reboot"] and len(result["changes"]) == 9, result
    assert (root / UNIT.lstrip("/")).stat().st_mode & 0o777 == 0o640
    assert (root / "etc/systemd/system/multi-user.target.wants/allreduce-tuning.service").readlink() == Path(UNIT)
    assert (root / "proc/sys/vm/swappiness").read_text() == "10"
    assert run("tuning", root, state="absent", **WANTED)["changed"] is True
    after = snapshot(root)
    assert {path for path in after if after[path] != before.get(path)} == {
        path for path in before if isinstance(before[path], bytes) and before[path] != after[path]
    }
    # The recorded tree keeps what was written, where a kernel makes the text: only the end of the line differs.
    assert {path: text.strip() if isinstance(text, bytes) else text for path, text in after.items()} == {
        path: text.strip() if isinstance(text, bytes) else text for path, text in before.items()
    }


def test_change_in_check_mode(root):
    before = snapshot(root)
    result = run("tuning", root, check=True, **WANTED)
    assert result["changed"] and snapshot(root) == before
    shown = {one["before_header"]: one["after"] for one in result["diff"]}
    assert shown["/etc/sysctl.d/90-allreduce.conf"] == "vm.swappiness = 10\n"
    assert "/proc/irq/120/smp_affinity_list: 2-3\n" in shown["kernel"]


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(root, check):
    run("tuning", root, **WANTED)
    result = run("tuning", root, check=check, **WANTED)
    assert (result["changed"], result["changes"], result["diff"]) == (False, [], [])


def test_absent_without_a_record(root):
    before = snapshot(root)
    assert run("tuning", root, state="absent")["changed"] is False
    assert snapshot(root) == before


def test_what_the_tree_refuses_is_told(root):
    place = root / "proc/sys/vm/swappiness"
    place.unlink()
    place.symlink_to("/proc/version")
    result = run("tuning", root, values=WANTED["values"][:1])
    assert result["failed"] and result["findings"][0]["code"] == "not_set"
    assert result["msg"].startswith("/proc/sys/vm/swappiness does not take 10: ")


@pytest.mark.parametrize("wrong", [{"path": "/x"}, {"path": "/x", "content": "", "link": "/y"}])
def test_a_file_is_text_or_a_link(root, wrong):
    assert run("tuning", root, files=[wrong])["failed"]


def test_a_record_that_is_not_ours_is_refused(root):
    tree(root, {"/var/lib/allreduce/tuning.json": '{"format": 9}'})
    for result in (run("tuning", root, state="absent"), run("tuning_facts", root)):
        assert result["failed"] and "has format 9; this release reads 1" in result["msg"]


def test_the_fact(root):
    run("tuning", root, **WANTED)
    fact = run("tuning_facts", root, sysctl=["vm.swappiness"], probe=True)["ansible_facts"]["gpu_tuning"]
    assert fact["sysctl"] == {"vm.swappiness": {"running": "10", "original": "60"}}
    assert fact["recorded"] is True and fact["limits"]["fresh"] is None
    assert [one["value"] for one in fact["sysctl_lines"]] == ["10"]


@pytest.mark.parametrize("record", ["", "../tuning", "a/b", "Tuning"])
def test_the_name_of_a_record_is_a_word(root, record):
    before = snapshot(root)
    result = run("tuning", root, record=record, **WANTED)
    assert result["failed"] and "no name of a record" in result["msg"] and snapshot(root) == before


@pytest.mark.parametrize(
    ("record", "facts", "fact"),
    [
        (one.options.get("record", "tuning"), one.facts.rpartition(".")[2], f"gpu_{one.name}")
        for one in SUBJECTS
        if one.applied_by == "allreduce.gpu.tuning"
    ],
)
def test_what_was_applied_is_measured_until_it_is_put_back(root, record, facts, fact):
    other = {"files": [{"path": "/etc/y.conf", "content": ""}], "record": "pcie" if record == "tuning" else "tuning"}
    must = f"module {facts} returns applied=holding(tree, {record!r}), by the record of the subject's options"

    def applied():
        answer = run(facts, root)
        assert "applied" in answer, must
        assert [*answer["ansible_facts"]] == [fact], f"module {facts} returns fact {fact}"
        return answer["applied"]

    run("tuning", root, **other)  # records are kept apart
    wanted = {"files": WANTED["files"], "values": WANTED["values"][:1], "record": record}
    note, value = root / f"run/allreduce/applied/{record}.json", root / "proc/sys/vm/swappiness"
    run("tuning", root, check=True, applied="d1", **wanted)
    assert applied() is None and not note.exists()
    run("tuning", root, applied="d1", **wanted)
    assert applied() == "d1", must
    value.write_text("60")
    assert applied() is None and value.read_text() == "60"
    run("tuning", root, applied="d1", **wanted)
    run("tuning", root, state="absent", applied="d2", record=record)
    assert applied() is None and not note.exists()
