# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.check import check, compared, told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.node import node_checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.sentence import Sentence


def test_unknown_is_never_passed():
    assert compared("a", "health", "x", None, None, "why")["status"] == "unknown"


def test_a_check_that_passed_has_neither_reason_nor_fix():
    found = compared("a", "health", "x", "x", True, "why", "do it")
    assert (found["reason"], found["fix"]) == ("", "")


def test_the_cause_and_the_remedy_of_a_check_are_apart():
    found = compared("a", "health", "x", "y", False, "why", "do it")
    assert (found["reason"], found["fix"]) == ("why", "do it")


def test_several_causes_and_their_remedies_are_told_once_each():
    wrong = [Sentence("a is down", "start it"), Sentence("b is down", "start it"), Sentence("c is odd")]
    assert told(wrong) == ("a is down; b is down; c is odd", "start it")


def test_a_misspelt_status_is_refused():
    with pytest.raises(ValueError, match="okay"):
        check("a", "health", "x", "x", "okay")


def test_a_node_about_which_nothing_is_known_has_no_passed_check():
    """Nothing was measured: empty facts must not look like success."""
    stack = {
        "gpus": [{"model": "A40", "count": 1}],
        "driver": {"branch": "535", "dkms_module": "nvidia-current", "packages": [{"name": "a", "version": None}]},
        "environments": [{"name": "main", "python": "3.11", "accelerator": "cuda", "frameworks": {"pytorch": "2"}}],
    }
    checks = node_checks(node_comparisons(stack, {}, {}), stack, {}, {}, "gpu-1")
    assert [c["name"] for c in checks if c["status"] == "passed"] == []
