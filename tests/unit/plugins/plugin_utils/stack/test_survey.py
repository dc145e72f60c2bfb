# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random questions: every plan is good, and everything that a refusal proposes works.

SURVEY_QUESTIONS in the environment says how many questions; `nox -s survey`, a part of test-all, asks 10,000. Each takes a core
half a second to a second, so that the 300 of before were a fifth of all unit tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from survey import survey  # noqa: E402 (a neighbour, found through the line above)

ASKED = int(os.environ.get("SURVEY_QUESTIONS", "40"))
NEVER = [
    "accepted, but the checker objects",
    "no suggestion, and no hardware forbids it",
    "hardware forbids, and nothing says which would do",
    "suggestion does not resolve",
    "advice does not resolve",
    "not one sentence for each rule",
    "blame is not sufficient",
    "blame is not minimal",
]


@pytest.fixture(scope="module")
def counts():
    found = survey(ASKED)
    print(dict(sorted(found.items())))
    return found


@pytest.mark.parametrize("what", NEVER)
def test_never(counts, what):
    assert counts[what] == 0


def test_questions_of_both_kinds_are_asked(counts):
    assert min(counts["accepted"], counts["refused"]) > ASKED / 5
    assert counts["not a question"] < ASKED / 20


def test_few_suggestions_only_give_something_up(counts):
    """What a host cannot have in any version, whatever else is asked for, has no near version to propose."""
    assert counts["suggestion only drops what the host could have"] <= counts["suggestion"] / 10
