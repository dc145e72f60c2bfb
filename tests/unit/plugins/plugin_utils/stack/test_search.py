# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first stack in the order of preference, compared with trying every combination."""

from __future__ import annotations

from itertools import product

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import Session
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.rule import Rule
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.search import Network, solve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.slots import slots
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES

SMALL = [
    {"cuda": "12.4", "pytorch": "none"},
    {"cuda": "12.4", "pytorch": "2.4", "python": "3.10"},
    {"cuda": "12.1", "pytorch": "2.15"},
    {"cuda": "11.8", "cudnn": "9", "pytorch": "none"},
]


def question_of(request, **question):
    return read_question(TABLES, {"os": "ubuntu 22.04", "gpus": ["A40"], "request": request, **question})


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
    asked = question_of({**request_, "driver": "580", "nccl": "2.27"})
    expected = by_trying(session, asked)
    if expected:
        assert solve(session, asked) == expected
    else:
        assert solve(session, asked) is None


def test_a_wanted_order_comes_before_the_slots_own():
    session, asked = Session(TABLES), question_of({"pytorch": "none", "cuda": "12"})
    cuda = next(slot for slot in slots(asked) if slot.component == "cuda")
    pool = session.candidates(asked, cuda)
    last = solve(session, asked, wanted=[(cuda, lambda one: -pool.index(one))])
    assert last[cuda] is pool[-1]
    assert solve(session, asked)[cuda] is pool[0]


def test_what_is_not_wanted_is_never_tried(monkeypatch):
    """Forbidden candidates of a slot that is decided late are not a reason to try all of those before it."""
    session, tried = Session(TABLES), []
    asked = question_of({"pytorch": "latest", "cupy": "latest", "jax": "latest"}, environments="split")
    places = {slot.component: slot for slot in slots(asked) if not slot.environment or slot.component != "python"}
    fill = Network.fill
    monkeypatch.setattr(Network, "fill", lambda self, alive, order: tried.append(1) or fill(self, alive, order))
    first = [(places[name], lambda one: 0) for name in ("cupy", "jax", "cuda")]
    assert solve(session, asked, wanted=[*first, (places["cudnn"], lambda one: None)]) is None
    assert not tried


class Small:
    """The slots of a request without a framework, under rules of a test's own, which know a component's preferred candidate."""

    def __init__(self):
        self.session, self.asked, self.rules = Session(TABLES), question_of({"pytorch": "none"}), []
        self.places = {slot.component: slot for slot in slots(self.asked)}
        self.pools = {kind: self.session.candidates(self.asked, slot) for kind, slot in self.places.items()}

    def forbid(self, *kinds, when):
        """Object where this holds of whether each of the components is its preferred candidate."""

        def check(context, *chosen):
            return "no" if when(*(one is self.pools[one.component][0] for one in chosen)) else None

        self.rules.append(Rule("example", kinds, check, ()))

    def solve(self, **given):
        return solve(self.session, self.asked, self.rules, **given)

    def places_of(self, found):
        """The places of what was found in the order of preference, where there is a choice."""
        return {
            kind: self.pools[kind].index(found[slot]) for kind, slot in self.places.items() if len(self.pools[kind]) > 1
        }


@pytest.fixture
def small():
    return Small()


def same(one, other):
    return one is other


def different(one, other):
    return one is not other


def test_only_the_given_rules_hold():
    session, asked = Session(TABLES), question_of({"cuda": "11.8", "cudnn": "9", "nccl": "2.27", "pytorch": "none"})
    assert solve(session, asked) is None
    free = solve(session, asked, rules=[])
    assert free == {slot: session.candidates(asked, slot)[0] for slot in slots(asked)}


def test_there_is_no_stack_where_facts_clash(small):
    assert small.solve()
    small.rules.append(Rule("example", ("os",), lambda context, fact: "no", ()))
    assert small.solve() is None


def test_what_is_left_has_partners_everywhere(small):
    """cuDNN has one candidate left, which leaves CUDA one, which leaves the driver one."""
    small.forbid("driver", "cuda", when=different)
    small.forbid("cuda", "cudnn", when=different)
    small.forbid("cudnn", when=lambda preferred: not preferred)
    network = Network(small.session, small.asked, small.rules)
    left = network.narrowed(network.alive)
    assert [alive.bit_count() for alive in left[:3]] == [1, 1, 1]
    assert left[3] == network.alive[3]


def test_a_choice_holds_for_those_after_it(small):
    small.forbid("driver", "cuda", when=same)
    assert small.places_of(small.solve()) == {"driver": 0, "cuda": 1, "cudnn": 0, "nccl": 0}


def test_a_choice_is_taken_back_where_nothing_fits_it(small):
    """Every pair has a solution, all three have none with the preferred driver."""
    small.forbid("driver", "cuda", when=same)
    small.forbid("driver", "cudnn", when=same)
    small.forbid("cuda", "cudnn", when=lambda cuda, cudnn: not cuda and not cudnn)
    assert small.places_of(small.solve()) == {"driver": 1, "cuda": 0, "cudnn": 0, "nccl": 0}


def test_there_is_no_stack_where_every_choice_fails(small):
    for pair in (("driver", "cuda"), ("driver", "cudnn"), ("cuda", "cudnn")):
        small.forbid(*pair, when=same)
    assert small.solve() is None


def test_what_is_wanted_is_still_forbidden_by_rules(small):
    small.forbid("cuda", when=lambda preferred: preferred)
    wanted = [(small.places["cuda"], small.pools["cuda"].index)]
    assert small.places_of(small.solve(wanted=wanted))["cuda"] == 1


def test_one_candidate_can_be_wanted_alone(small):
    only = small.pools["cuda"][3]
    wanted = [(small.places["cuda"], lambda one: 0 if one is only else None)]
    assert small.places_of(small.solve(wanted=wanted))["cuda"] == 3
