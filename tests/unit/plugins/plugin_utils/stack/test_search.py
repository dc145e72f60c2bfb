# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first stack in the order of preference, compared with trying every combination."""

from __future__ import annotations

from itertools import product

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import make_problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import Session
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.search import Network, solve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.slots import slots
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES

SMALL = [
    {"cuda": "12.4", "pytorch": "none"},
    {"cuda": "12.4", "pytorch": "2.4", "python": "3.10"},
    {"cuda": "12.1", "pytorch": "2.15"},
    {"cuda": "11.8", "cudnn": "9", "pytorch": "none"},
]


def problem(request, **question):
    return make_problem(TABLES, {"os": "ubuntu 22.04", "gpus": ["A40"], "request": request, **question})


def by_trying(session, asked):
    """The first combination that no rule objects to."""
    judge, places = session.judge(asked), slots(asked)
    if not judge.facts_agree:
        return None
    pools = [
        [one for one in session.candidates(asked, slot) if not list(judge.reasons(one))][:12] for slot in places
    ]  # the preferred ones, so that there is an end to it
    for chosen in product(*pools):
        if not any(said for one in chosen for other in chosen for said in judge.reasons(one, other)):
            return dict(zip(places, chosen, strict=True))
    return None


@pytest.mark.parametrize("request_", SMALL, ids=str)
def test_what_is_found_is_the_first_combination(request_):
    session = Session(TABLES)
    asked = problem({**request_, "driver": "580", "nccl": "2.27"})
    expected = by_trying(session, asked)
    if expected:
        assert solve(session, asked) == expected
    else:
        assert solve(session, asked) is None


def test_a_wanted_order_comes_before_the_slots_own():
    session, asked = Session(TABLES), problem({"pytorch": "none", "cuda": "12"})
    cuda = next(slot for slot in slots(asked) if slot.component == "cuda")
    pool = session.candidates(asked, cuda)
    last = solve(session, asked, wanted=[(cuda, lambda one: -pool.index(one))])
    assert last[cuda] is pool[-1]
    assert solve(session, asked)[cuda] is pool[0]


def test_what_is_not_wanted_is_never_tried(monkeypatch):
    """Forbidden candidates of a slot that is decided late are no reason to try all of those before it."""
    session, tried = Session(TABLES), []
    asked = problem({"pytorch": "latest", "cupy": "latest", "jax": "latest"}, environments="split")
    places = {slot.component: slot for slot in slots(asked) if not slot.environment or slot.component != "python"}
    fill = Network.fill
    monkeypatch.setattr(Network, "fill", lambda self, alive, order: tried.append(1) or fill(self, alive, order))
    first = [(places[name], lambda one: 0) for name in ("cupy", "jax", "cuda")]
    assert solve(session, asked, wanted=[*first, (places["cudnn"], lambda one: None)]) is None
    assert not tried
