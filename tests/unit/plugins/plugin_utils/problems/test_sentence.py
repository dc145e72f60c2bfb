# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levels of a problem, in one line and on lines of their own."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.sentence import Sentence, error_lines
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import SENTENCES

LOCK = Sentence(
    "stack.lock.yml was not written", "correct its permissions, or choose another place", "Permission denied"
)


def test_one_line_has_all_levels():
    assert LOCK.line == (
        "stack.lock.yml was not written (Permission denied); correct its permissions, or choose another place."
    )
    assert (
        Sentence("No task has the tag ncll", "did you mean nccl?").line
        == "No task has the tag ncll; did you mean nccl?"
    )


def test_each_level_is_on_a_line_of_its_own_and_a_problem_is_told_once():
    assert error_lines([LOCK, Sentence("x is 1", "'ansible-doc x' tells more"), LOCK]) == [
        "error: stack.lock.yml was not written.",
        "  why: Permission denied.",
        "  fix: Correct its permissions, or choose another place.",
        "",
        "error: x is 1.",
        "  fix: 'ansible-doc x' tells more.",
        "",
    ]


@pytest.mark.parametrize("first", ["nccl_state=present", "/etc/nccl.conf", "{x: 1}", "NCCL"])
def test_what_is_to_be_copied_stays_as_it_is(first):
    assert error_lines([Sentence("x", f"{first} sets it")])[1] == f"  fix: {first} sets it."


def test_lines_fit_a_terminal_of_80_columns():
    lines = error_lines([*SENTENCES.values(), Sentence("word " * 50, "x" * 200)])
    assert max(map(len, lines)) <= 80
    assert all(line.startswith(("error: ", "  why: ", "  fix: ", " " * 7)) for line in lines if line)
