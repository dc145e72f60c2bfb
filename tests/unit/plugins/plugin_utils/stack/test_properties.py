# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every question: good stacks, monotonicity, no dependence on order, smallest conflicts."""

from __future__ import annotations

import sys
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import blame
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import FRAMEWORKS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import Session
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.search import solve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load
from hypothesis import example, given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from checker import check  # noqa: E402 (a neighbour, found through the line above)
from judges import judges  # noqa: E402

TABLES = load()
OSES = [f"{row['id']} {row['version']}" for row in TABLES.rows("distros")]
MODELS = [row["model"] for row in TABLES.rows("gpus")]
CONSTRAINTS = {
    "driver": ["latest", "470", "525", "535", "550", "570", "580", "595", "615", ">=535", "<580"],
    "kernel_modules": ["auto", "open", "proprietary"],
    "cuda": ["latest", "11", "11.8", "12", "12.1", "12.4", "13", ">=12,<13"],
    "cudnn": ["latest", "8.9", "9", "9.1"],
    "nccl": ["latest", "2.18", "2.21", "2.27"],
    "pytorch": ["latest", "2.0", "2.1", "2.4", "2.7", "2.11", "2.15", "<2.6"],
    "pytorch_index": ["cu118", "cu121", "cu126", "cu128", "cu130", "cpu", "cu120", "pypi"],
    "tensorflow": ["latest", "2.12", "2.15", "2.18", "2.20", "<2.16"],
    "horovod": ["latest", "0.28.1"],
    "cupy": ["latest", "12", "13.6", "14"],
    "python": ["3.8", "3.10", "3.12", ">=3.11"],
    **{name: judge.LOOSE for name, judge in judges().items()},
}


def requests(most=5):
    keys = st.lists(st.sampled_from(sorted(CONSTRAINTS)), unique=True, max_size=most)
    return keys.flatmap(
        lambda names: st.fixed_dictionaries({name: st.sampled_from(CONSTRAINTS[name]) for name in names})
    )


QUESTIONS = st.fixed_dictionaries(
    {
        "os": st.sampled_from(OSES),
        "arch": st.sampled_from(["x86_64", "x86_64", "aarch64"]),
        "gpus": st.lists(st.sampled_from(MODELS), max_size=3),
        "environments": st.sampled_from(["one", "split"]),
        "interpreter": st.sampled_from([None, None, "distribution", "standalone", "/usr/bin/python3.10"]),
        "request": requests(),
    }
)


def answer(question):
    try:
        return resolve(question)
    except InputError:
        return None


@given(QUESTIONS)
@example(
    {
        "os": "ubuntu 20.04",
        "arch": "x86_64",
        "gpus": ["Tesla M40"],
        "environments": "one",
        "request": {"cuda": "latest", "cudnn": "latest", "horovod": "latest", "pytorch_index": "cpu"},
    }
)
def test_a_stack_satisfies_the_independent_checker(question):
    found = answer(question)
    if found and found["stack"]:
        assert check(found["stack"]) == []


@given(QUESTIONS, st.sampled_from(sorted(CONSTRAINTS)), st.data())
def test_another_constraint_never_turns_a_refusal_into_a_stack(question, name, data):
    """The frameworks stay the same: naming another one would be another question, not a narrower one."""
    if name in question["request"] or name in ("pytorch_index", *FRAMEWORKS):
        return
    found = answer(question)
    if found and found["stack"] is None:
        more = {**question, "request": {**question["request"], name: data.draw(st.sampled_from(CONSTRAINTS[name]))}}
        again = answer(more)
        # cuda-compat is the one thing a constraint permits: it is never taken without asking for the toolkit.
        permitted = name == "cuda" and question["gpus"]
        assert again is None or again["stack"] is None or permitted


@given(QUESTIONS, st.randoms())
def test_the_order_of_inputs_does_not_matter(question, random):
    items = list(question["request"].items())
    random.shuffle(items)
    gpus = list(question["gpus"])
    random.shuffle(gpus)
    assert answer({**question, "request": dict(items), "gpus": gpus}) == answer(question)


@given(QUESTIONS)
@example(
    {
        "os": "ubuntu 24.04",
        "arch": "aarch64",
        "gpus": ["Tesla K80"],
        "environments": "one",
        "request": {"pytorch_index": "cpu", "cuda": "latest"},
    }
)
def test_conflicts_are_smallest(question):
    """A conflict clashes, and taking any one part of it away ends the clash: no innocent is blamed."""
    try:
        asked = read_question(TABLES, question)
    except InputError:
        return
    session = Session(TABLES)
    if solve(session, asked) is not None:
        return
    parts = blame.parts_of(asked)
    conflict = blame.smallest_conflict(session, asked, parts)
    assert solve(session, blame.keep(asked, conflict)) is None
    for part in conflict:
        fewer = [one for one in conflict if one != part]
        assert solve(session, blame.keep(asked, fewer)) is not None, (conflict, part)


@given(QUESTIONS)
def test_a_refusal_gives_reasons(question):
    found = answer(question)
    if found and found["stack"] is None:
        assert found["conflicts"]
        assert all(one["reason"] and one["between"] for one in found["conflicts"])


@given(QUESTIONS)
@example(
    {
        "os": "ubuntu 20.04",
        "arch": "aarch64",
        "gpus": ["Tesla K80"],
        "environments": "one",
        "request": {"cuda": "latest", "cudnn": "latest", "driver": "latest", "horovod": "latest", "pytorch": "latest"},
    }
)
def test_suggestions_work(question):
    found = answer(question)
    if found and found["suggestion"]:
        request = found["suggestion"]["request"]
        again = resolve(
            {
                **question,
                "environments": request.get("environments", question["environments"]),
                "interpreter": found["suggestion"]["changes"].get("python_env_python", question.get("interpreter")),
                "request": request,
            }
        )
        assert again["stack"] is not None
