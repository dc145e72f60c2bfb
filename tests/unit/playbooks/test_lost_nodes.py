# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbooks say of nodes that cannot be reached, with an ssh that finds no way to any."""

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


# What each playbook is given; verify goes on with the nodes that answer.
OPTIONS = {
    "plan": ["-e", "plan_measure=true"],
    "site": [],
    "train": ["-e", f"train_script={CHECKOUT}/examples/train_ddp.py"],
    "benchmark": [],
    "stage": ["-e", "stage_name=small", "-e", "stage_source=/nowhere"],
    "verify": [],
}
NEEDS_ALL = sorted({*OPTIONS} - {"verify"})
# Those that may be told which nodes take part, and the variable for it.
SELECTS = {"train": "train_nodes", "benchmark": "benchmark_nodes"}


def started(directory, playbook, *options, **hosts):
    return run(directory, playbook, *OPTIONS[playbook], *options, **hosts)


@pytest.mark.parametrize("playbook", NEEDS_ALL)
def test_the_nodes_that_cannot_be_reached_are_named_before_anything_starts(tmp_path, playbook):
    done = started(tmp_path, playbook, gpu_1=LOST, gpu_2=HERE)
    assert done.status == 2, done.output
    assert "error: 1 of 2 nodes cannot be reached, so nothing was touched: gpu_1." in done.lines
    assert "  fix: Check power, address, SSH user and key." in done.lines
    assert "--limit '!gpu_1'" in done.words
    assert not list((tmp_path / "reports").glob("*/*"))


@pytest.mark.parametrize("playbook", SELECTS)
def test_a_node_that_is_selected_is_named_where_the_first_is_not(tmp_path, playbook):
    selected = ["-e", json.dumps({SELECTS[playbook]: ["gpu_2"]})]
    done = started(tmp_path, playbook, *selected, gpu_1=HERE, gpu_2=LOST)
    assert done.status == 2, done.output
    assert "error: 1 of 1 nodes cannot be reached, so nothing was touched: gpu_2." in done.lines


@pytest.mark.parametrize("playbook", SELECTS)
def test_a_node_that_is_not_selected_need_not_be_reached(tmp_path, playbook):
    selected = ["--check", "-e", json.dumps({SELECTS[playbook]: ["gpu_2"]})]
    done = started(tmp_path, playbook, *selected, gpu_1=LOST, gpu_2=HERE)
    assert done.status == 0, done.output
    assert "cannot be reached" not in done.words


def test_a_benchmark_without_root_names_them_too(tmp_path):
    done = started(tmp_path, "benchmark", "-e", "benchmark_supervised=false", gpu_1=LOST, gpu_2=HERE)
    assert done.status == 2, done.output
    assert "error: 1 of 2 nodes cannot be reached, so nothing was touched: gpu_1." in done.lines


@pytest.mark.parametrize("playbook", OPTIONS)
def test_where_no_node_can_be_reached_all_are_named_at_once(tmp_path, playbook):
    done = started(tmp_path, playbook, gpu_1=LOST, gpu_2={"ansible_host": "192.0.2.2"})
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
