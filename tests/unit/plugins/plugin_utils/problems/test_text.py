# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every problem has a sentence: what is wrong, the value, what to set instead."""

import inspect
import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils import subjects
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import decide, lock, plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems import text
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import sources as sources_of_report
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import writing
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import inputs
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import SUBJECTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import SENTENCES, describe, describe_all


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_says_what_to_do_and_full_stops_are_added(code):
    what, fix, why = SENTENCES[code]
    assert what and fix, "a fact, then what to set instead"
    assert not [part for part in (what, fix, why) if part.endswith((".", ";"))]


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (
            Problem("shared_address", "10.0.0.1", {"nodes": ["a", "b"]}),
            "a, b have the same cluster address 10.0.0.1; set gpu_cluster_address of each to the address at which the "
            "others reach it.",
        ),
        (
            Problem("too_few_forks", "forks", {"nodes": 8, "forks": 5}),
            "Training on 8 nodes needs as many forks, but Ansible runs with 5; add '-f 8' to the command line.",
        ),
        (
            Problem("partial_rotation", "2026-11", {"absent": ["a", "b"]}),
            "cluster_ssh_rotate asks for new keys, which needs all nodes at once, and a, b take no part in this run; run again "
            "without --limit and serial when they answer, or remove cluster_ssh_rotate.",
        ),
        (
            Problem("training_absent", "train_nodes", {"nodes": ["a"]}),
            "a should train but takes no part in this play; remove the limit, serial or failure that keeps them out, or choose "
            "other nodes.",
        ),
        (
            Problem("training_absent", "train_nodes", {"nodes": ["a", "b"]}),
            "a, b should train but take no part in this play; remove the limit, serial or failure that keeps them out, or choose "
            "other nodes.",
        ),
    ],
)
def test_a_problem_is_one_sentence(problem, sentence):
    assert describe(problem) == sentence


def test_a_thousand_hosts_are_not_all_named():
    nodes = [f"gpu-{number}" for number in range(1000)]
    sentence = describe(Problem("missing_address", "gpu_cluster_address", {"nodes": nodes}))
    assert re.search(r"gpu-7 and 992 more; set", sentence)


def test_the_same_problem_is_told_once():
    problem = Problem("no_training_nodes", "gpu_nodes")
    assert describe_all([problem, problem]) == describe(problem)


def test_every_problem_of_a_request_and_of_a_lock_has_a_sentence():
    """Their codes stand where they are raised."""
    sources = [inspect.getsource(module) for module in (plan, lock, decide, sources_of_report, writing)]
    sources += [path.read_text(encoding="utf-8") for path in Path(inputs.__file__).parent.rglob("*.py")]
    found = set(re.findall(r'(?:InputError\(|Problem\(|_failed\()"(\w+)"', "".join(sources)))
    assert {
        "unknown_gpu",
        "wrong_request",
        "lock_format",
        "lock_outdated",
        "no_verification",
        "report_not_read",
    } <= found
    assert found <= set(SENTENCES)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_every_problem_of_a_subject_has_a_sentence(subject):
    """But for what only the report tells, whose sentences are in a file text.py beside it."""
    room = Path(inspect.getfile(subjects)).parent / subject.name
    sources = {path.stem: path.read_text(encoding="utf-8") for path in room.glob("*.py")}
    found = set(re.findall(r'\bProblem\(\s*"(\w+)"', "".join(sources.values())))
    shown = {code for code in found if f'"{code}":' in sources.get("text", "")}
    missing = found - shown - {*subject.sentences, *text.SENTENCES}
    assert not missing, f"SUBJECT of {room.name} has no sentences for these problems"
