# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded answers of nft, and what is made of them."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import nft

META = {"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}
# nft 1.0.6, Debian 12: our table, and a table of the host's own that refuses by default.
OURS = [
    {"table": {"family": "inet", "name": "allreduce", "handle": 3}},
    {"set": {"family": "inet", "name": "peers4", "table": "allreduce", "type": "ipv4_addr", "handle": 3, "flags": ["interval"],
             "elem": ["10.0.0.2", "10.0.0.1", {"prefix": {"addr": "10.1.0.0", "len": 16}}]}},
    {"set": {"family": "inet", "name": "peers6", "table": "allreduce", "type": "ipv6_addr", "handle": 4}},
    {"chain": {"family": "inet", "table": "allreduce", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": -145,
               "policy": "accept"}},
    {"rule": {"family": "inet", "table": "allreduce", "chain": "input", "handle": 5, "comment": "allreduce.gpu 7a1e838ca1e718cc",
              "expr": [{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}, {"accept": None}]}},
]  # fmt: skip
LO = {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}
DOOR = [{"match": {"op": "==", "left": {"&": [{"meta": {"key": "mark"}}, 4096]}, "right": 4096}}, {"accept": None}]


def chain(family="inet", table="filter", name="input", policy="drop", hook="input"):
    return {"chain": {"family": family, "table": table, "name": name, "handle": 1, "type": "filter", "hook": hook, "prio": 0, "policy": policy}}  # fmt: skip


def rule(*expr, handle=7, **more):
    place = {"family": "inet", "table": "filter", "chain": "input", **more}
    return {"rule": {**place, "handle": handle, "expr": list(expr)}}


def ruleset(*objects):
    return nft.objects(json.dumps({"nftables": [META, *objects]}))


@pytest.mark.parametrize("text", [None, "", "{}", "Error: syntax", '{"nftables": null}'])
def test_nft_that_says_nothing(text):
    assert nft.objects(text) == []
    assert nft.loaded(nft.objects(text)) == {"digest": None, "peers": None}


def test_our_table():
    expected = {"digest": "7a1e838ca1e718cc", "peers": ["10.0.0.1", "10.0.0.2", "10.1.0.0/16"]}
    assert nft.loaded(ruleset(*OURS, chain())) == expected


@pytest.mark.parametrize(
    ("one", "text"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ({"prefix": {"addr": "fd00::", "len": 64}}, "fd00::/64"),
        ({"range": ["10.0.0.1", "10.0.0.9"]}, "10.0.0.1-10.0.0.9"),
        ({"elem": {"val": {"prefix": {"addr": "10.0.0.0", "len": 8}}, "timeout": 9}}, "10.0.0.0/8"),
    ],
)
def test_elements(one, text):
    assert nft.element(one) == text


@pytest.mark.parametrize(
    ("objects", "closed"),
    [
        ([chain()], True),
        ([chain(policy="accept")], False),
        ([chain(policy="accept"), rule(LO, {"accept": None})], False),
        ([chain(policy="accept"), rule(LO, {"accept": None}), rule({"counter": {"packets": 0, "bytes": 0}}, {"drop": None})], True),
        ([chain(policy="accept"), rule({"log": {"prefix": "x"}}, {"reject": {"type": "icmpx", "expr": "admin-prohibited"}})], True),
        ([chain(policy="accept"), rule({"drop": None}), rule({"counter": None})], False),
        ([chain(policy="accept"), rule({"xt": None}, {"drop": None})], False),
        ([chain(hook="forward")], False),
        ([chain(family="bridge")], False),
        ([chain(table="firewalld", name="filter_INPUT")], False),
        ([chain(table="allreduce")], False),
    ],
)  # fmt: skip
def test_a_chain_that_refuses_what_nobody_lets_in(objects, closed):
    assert bool(nft.closed(ruleset(*objects))) == closed


@pytest.mark.parametrize(
    ("made", "tool"),
    [
        (chain("ip", name="INPUT"), "iptables"),
        (chain("ip6", name="INPUT"), "iptables"),
        (chain("ip", name="input"), "nft"),
        (chain("inet", name="INPUT"), "nft"),
    ],
)
def test_who_made_a_chain(made, tool):
    assert [one["tool"] for one in nft.closed(ruleset(made))] == [tool]


def test_doors_are_made_once_and_only_by_nft():
    objects = [chain(), chain("ip", name="INPUT"), chain(table="site", policy="accept")]
    expected = 'insert rule inet filter input meta mark and 0x1000 == 0x1000 accept comment "allreduce.gpu"\n'
    assert nft.door_commands(ruleset(*objects)) == expected
    door = rule(*DOOR, handle=4, comment="allreduce.gpu")
    assert nft.door_commands(ruleset(*objects, door)) == ""
    assert [one["door"] for one in nft.closed(ruleset(*objects, door))] == [True, False]


def test_removal_takes_what_is_ours_and_nothing_else():
    door = rule(*DOOR, handle=4, comment="allreduce.gpu")
    expected = "delete rule inet filter input handle 4\ndelete table inet allreduce\n"
    assert nft.removal(ruleset(*OURS, chain(), rule(LO, {"accept": None}), door)) == expected
    assert nft.removal(ruleset(chain(), rule(LO, {"accept": None}))) == ""
    # A chain that lets everything in by now still has its door.
    assert nft.removal(ruleset(chain(policy="accept"), door)) == "delete rule inet filter input handle 4\n"
