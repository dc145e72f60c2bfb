# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of candidates as bits: what passes is what the rules let through one by one, and nothing is asked twice."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.clauses import Clause, Relation, bits
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.model import Candidate
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.rule import Context, Doubt, Rule
from hypothesis import given
from hypothesis import strategies as st

HERE = [Candidate("cuda", str(number)) for number in range(5)]
THERE = [Candidate("nccl", str(number)) for number in range(6)]
FACT = Candidate("os", "ubuntu 22.04")
SETS = st.integers(0, 2 ** len(THERE) - 1)
MINE = st.integers(0, 2 ** len(HERE) - 1)
CLASHES = st.sets(st.tuples(st.sampled_from(HERE), st.sampled_from(THERE)))


def clause(clashes, asked, scope=("nccl", "os", "cuda")):
    def check(context, *judged):
        by_kind = {one.component: one for one in judged}
        assert [one.component for one in judged] == list(scope)
        asked[by_kind["cuda"], by_kind["nccl"]] += 1
        return "they clash" if (by_kind["cuda"], by_kind["nccl"]) in clashes else None

    return Clause(Context(None), Rule("example", scope, check, ()), (FACT,))


@pytest.mark.parametrize("number, places", [(0, []), (1, [0]), (0b101001, [0, 3, 5]), (1 << 200, [200])])
def test_bits(number, places):
    assert list(bits(number)) == places


@given(st.lists(CLASHES, min_size=1, max_size=3), st.lists(st.tuples(MINE, SETS), min_size=1, max_size=4))
def test_supported_are_those_that_go_together_with_something_here(clashes, questions):
    counts = [Counter() for _one in clashes]
    relation = Relation([clause(one, asked) for one, asked in zip(clashes, counts, strict=True)], HERE, THERE)
    for here, there in questions:
        fine = {
            number
            for number in bits(there)
            if any(not any((HERE[mine], THERE[number]) in one for one in clashes) for mine in bits(here))
        }
        assert set(bits(relation.supported(here, there))) == fine
    assert all(times == 1 for asked in counts for times in asked.values())


@given(CLASHES, SETS)
def test_a_rule_is_not_asked_about_what_another_forbids(clashes, there):
    first, second = Counter(), Counter()
    Relation([clause(clashes, first), clause(set(), second)], HERE, THERE).supported(1, there)
    assert set(second) == {pair for pair in first if pair not in clashes}


def test_candidates_that_came_later_are_judged_too():
    asked, there = Counter(), THERE[:2]
    relation = Relation([clause({(HERE[0], THERE[2])}, asked)], HERE, there)
    assert relation.supported(1, 0b11) == 0b11
    there.append(THERE[2])
    assert relation.supported(1, 0b111) == 0b11


def test_reasons_do_not_depend_on_the_order_of_the_candidates():
    one = clause({(HERE[0], THERE[0])}, Counter())
    assert one.reason(HERE[0], THERE[0]) == one.reason(THERE[0], HERE[0]) == "they clash"


def test_a_clause_asks_its_rule_once_for_each_pair():
    asked = Counter()
    one = clause({(HERE[0], THERE[1])}, asked)
    for mine, others, passing in ((0, 0b0011, 0b0001), (0, 0b0110, 0b0100), (1, 0b0110, 0b0110), (0, 0b0111, 0b0101)):
        assert one.passing(HERE[mine], others, THERE) == passing
    assert set(asked.values()) == {1}
    assert len(asked) == 5


def test_what_a_rule_doubts_passes_where_its_doubts_do():
    doubting = Rule(
        "example", ("nccl", "cuda"), lambda context, nccl, cuda: Doubt("a limit") if nccl is THERE[1] else None, ()
    )
    one = Clause(Context(None), doubting, ())
    assert [one.passing(HERE[0], 0b11, THERE, doubts) for doubts in (False, True, False)] == [0b01, 0b11, 0b01]
    assert Relation([one], HERE, THERE, {doubting}).supported(1, 0b11) == 0b11
    assert Relation([one], HERE, THERE, set()).supported(1, 0b11) == 0b01


def test_a_relation_asks_its_clauses_once_for_each_pair():
    class Counting(Clause):
        def passing(self, mine, asked, others, doubts=False):
            counts.update((mine, number) for number in bits(asked))
            return asked

    counts = Counter()
    relation = Relation([Counting(Context(None), Rule("example", ("nccl", "cuda"), None, ()), ())], HERE, THERE)
    for here, there in ((0b01, 0b0011), (0b01, 0b0110), (0b10, 0b0110), (0b11, 0b0111)):
        assert relation.supported(here, there) == there
    assert set(counts.values()) == {1}
