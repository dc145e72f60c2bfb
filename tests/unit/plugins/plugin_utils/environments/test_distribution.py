# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everybody who lacks an environment gets it once, from somebody who has it by then."""

from collections import Counter

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.distribution import distribution
from hypothesis import given
from hypothesis import strategies as st


def one(digest="a", installed=False):
    return {"main": {"digest": digest, "installed": installed}}


def addresses(hosts):
    return {host: f"10.0.0.{index}" for index, host in enumerate(hosts, 1)}


def pairs(found):
    return [{receiver: entry["source"] for receiver, entry in round_.items()} for round_ in found["rounds"]]


@pytest.mark.parametrize(
    ("hosts", "downloaders", "rounds"),
    [
        ({"a": one()}, [], []),
        ({"a": one(), "b": one()}, ["a"], [{"b": "a"}]),
        ({"a": one(), "b": one(installed=True)}, ["b"], [{"a": "b"}]),
        ({"a": one(installed=True), "b": one(installed=True)}, [], []),
        # Two requests at the same time; that of c alone is nobody else's.
        ({"a": one(), "b": one("x"), "c": one("y"), "d": one("x"), "e": one()}, ["a", "b"], [{"e": "a", "d": "b"}]),
        (
            {name: one() for name in "abcdefghij"},
            ["a"],
            [{"b": "a", "c": "a"}, {"d": "a", "e": "a", "f": "b", "g": "b", "h": "c", "i": "c"}, {"j": "a"}],
        ),
    ],
)
def test_who_gets_it_from_whom(hosts, downloaders, rounds):
    found = distribution(hosts, addresses(hosts), fanout=2)["main"]
    assert (found["downloaders"], pairs(found)) == (downloaders, rounds)


def test_what_a_receiver_is_told():
    hosts = {name: one() for name in "abcd"}
    (first, second) = distribution(hosts, addresses(hosts), fanout=2)["main"]["rounds"]
    assert first["b"] == {"source": "a", "downloader": "a", "address": "10.0.0.1"}
    assert second == {"d": {"source": "a", "downloader": "a", "address": "10.0.0.1"}}


def test_who_has_no_address_gives_nothing():
    hosts = {name: one() for name in "abcdefg"}
    nowhere = {**addresses(hosts), "b": None}
    found = distribution(hosts, nowhere, fanout=2)["main"]
    assert "b" not in {entry["source"] for round_ in found["rounds"] for entry in round_.values()}
    assert distribution(hosts, dict.fromkeys(hosts))["main"] == {"downloaders": [], "rounds": []}


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.booleans(), st.booleans()), min_size=1, max_size=60),
    st.integers(min_value=1, max_value=5),
)
def test_everybody_gets_it_once_from_who_has_it(kinds, fanout):
    hosts = {f"n{index}": one(digest, installed) for index, (digest, installed, _reached) in enumerate(kinds)}
    reached = {f"n{index}": f"10.0.1.{index}" if kind[2] else None for index, kind in enumerate(kinds)}
    found = distribution(hosts, reached, fanout)["main"]
    have = set(found["downloaders"])
    for round_ in found["rounds"]:
        assert round_
        for receiver, entry in round_.items():
            assert receiver not in have
            assert entry["source"] in have
            assert reached[entry["source"]]
            assert entry["address"] == reached[entry["source"]]
            assert (
                len({hosts[name]["main"]["digest"] for name in (receiver, entry["source"], entry["downloader"])}) == 1
            )
        assert max(Counter(entry["source"] for entry in round_.values()).values()) <= fanout
        have |= set(round_)
    for downloader in found["downloaders"]:
        digest = hosts[downloader]["main"]["digest"]
        lacking = {name for name, host in hosts.items() if host["main"] == {"digest": digest, "installed": False}}
        assert lacking <= have
