# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verify and train say of nodes that cannot be reached, with an ssh that finds no way to any."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.support.command import CHECKOUT, play, write_inventory

LOST = {"ansible_host": "192.0.2.1"}
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "gpu_cluster_address": "10.0.0.2"}


def run(directory, playbook, *options, **hosts):
    write_inventory(directory, {"gpu_nodes": {"hosts": hosts, "vars": {"gpu_stack_request": {"pytorch": "none"}}}})
    reports = {"report_directory": str(directory / "reports"), "verify_collectives": False}
    return play(directory, playbook, "-e", json.dumps(reports), *options)


def trained(directory, *options, **hosts):
    return run(directory, "train", "-e", f"train_script={CHECKOUT}/examples/train_ddp.py", *options, **hosts)


def test_train_names_the_nodes_that_cannot_be_reached_before_anything_starts(tmp_path):
    train = trained(tmp_path, gpu_1=LOST, gpu_2=HERE)
    assert train.status == 2, train.output
    assert "error: 1 of 2 nodes cannot be reached, so nothing was touched: gpu_1." in train.lines
    assert "  fix: Check power, address, SSH user and key." in train.lines
    assert "--limit '!gpu_1'" in train.words
    assert not list((tmp_path / "reports" / "training").glob("*"))


def test_a_node_that_trains_is_named_where_the_first_does_not(tmp_path):
    train = trained(tmp_path, "-e", json.dumps({"train_nodes": ["gpu_2"]}), gpu_1=HERE, gpu_2=LOST)
    assert train.status == 2, train.output
    assert "error: 1 of 1 nodes cannot be reached, so nothing was touched: gpu_2." in train.lines


def test_a_node_that_does_not_train_need_not_be_reached(tmp_path):
    train = trained(tmp_path, "--check", "-e", json.dumps({"train_nodes": ["gpu_2"]}), gpu_1=LOST, gpu_2=HERE)
    assert train.status == 0, train.output
    assert "cannot be reached" not in train.words


@pytest.mark.parametrize("playbook", ["verify", "train"])
def test_where_no_node_can_be_reached_all_are_named_at_once(tmp_path, playbook):
    lost = {"gpu_1": LOST, "gpu_2": {"ansible_host": "192.0.2.2"}}
    done = trained(tmp_path, **lost) if playbook == "train" else run(tmp_path, playbook, **lost)
    assert done.status == 2, done.output
    assert "error: 2 of 2 nodes cannot be reached, so nothing was touched: gpu_1, gpu_2." in done.lines
    assert "  fix: Check power, address, SSH user and key." in done.lines


@pytest.mark.skipif(os.geteuid() != 0, reason="measures this machine as root")
def test_verify_goes_on_with_those_that_answer_and_says_the_same_of_the_others(tmp_path):
    verify = run(tmp_path, "verify", gpu_1=LOST, gpu_2=HERE)
    assert verify.status == 2, verify.output
    what = verify.lines.index("  failed: reachable: no; expected: yes")
    assert verify.lines[what - 1] == "gpu_1: failed (1 failed)"
    assert "no route" in verify.lines[what + 1]
    assert verify.lines[what + 2] == "    fix: Check power, address, SSH user and key."
    assert [line for line in verify.lines if line.startswith("gpu_2: ")] != []
    # A second attempt would wait once more for what does not answer.
    assert verify.output.count("UNREACHABLE") == 1
    document = json.loads((tmp_path / "reports" / "verify.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in document["nodes"]["gpu_1"]["checks"]] == ["reachable"]
