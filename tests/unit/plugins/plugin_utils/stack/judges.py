# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests know of single components: a file of judges/ for each that is not in checker.py and cases.yml.

A judge has CASES (as cases.yml has), FUTURES (of rules that no product in today's tables can break, what a table would
have to say, and what is asked then), LOOSE (ranges and prefixes that can be asked for), GPUS_ONLY, NEEDS (what is asked
for with it), published(), every version of its table, and check(stack, environment, cuda_majors), which is independent of
the resolver: it returns what is wrong as sentences and adds the CUDA majors that the framework brings. That of a part of the host
has check_host(stack) instead. rows_of(subjects) is for one whose rows (ROWS) have no version of their own.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent


@cache
def judges():
    """Component -> its judge."""
    return {path.stem: _load(path) for path in sorted((HERE / "judges").glob("*.py"))}


def rows_of(name, subjects):
    """What a judge reads of these tables: version -> row, unless it says otherwise."""
    own = getattr(judges()[name], "rows_of", None)
    return own(subjects) if own else {row["version"]: row for row in subjects[name]["rows"]}


def _load(path):
    spec = importlib.util.spec_from_file_location(f"judge_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def futures():
    """Rule -> (what changes the tables, what is asked)."""
    return {name: future for judge in judges().values() for name, future in judge.FUTURES.items()}


def cases():
    """Every case: those of cases.yml, then those of the judges."""
    found = yaml.safe_load((HERE / "cases.yml").read_text(encoding="utf-8"))
    return found + [case for judge in judges().values() for case in yaml.safe_load(judge.CASES)]
