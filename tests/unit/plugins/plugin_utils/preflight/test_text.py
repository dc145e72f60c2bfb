# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every problem has a sentence: what is wrong, the value, what to set instead."""

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.text import SENTENCES, describe, describe_all


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_ends_and_says_what_to_do(code):
    assert SENTENCES[code].endswith((".", "?"))
    assert ";" in SENTENCES[code], "a fact, then what to set instead"


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
