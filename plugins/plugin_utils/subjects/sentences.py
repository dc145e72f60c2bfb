# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for all problems, those of the settings subjects among them."""

from __future__ import annotations

from collections.abc import Iterable

from ..problems import sentences, text
from ..problems.problem import Problem
from ..problems.sentence import Sentence
from . import SUBJECTS

SENTENCES = {**sentences.SENTENCES, **{code: sentence for one in SUBJECTS for code, sentence in one.sentences.items()}}


def told(problem: Problem) -> Sentence:
    """Return the three levels of one problem."""
    return text.told(problem, SENTENCES)


def describe(problem: Problem) -> str:
    """Return the sentence for one problem."""
    return text.describe(problem, SENTENCES)


def describe_all(problems: Iterable[Problem]) -> str:
    """Return the sentences for several problems, each once."""
    return text.describe_all(problems, SENTENCES)
