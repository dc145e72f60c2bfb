# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tc prints in both of its forms, and its units."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import tc
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import CLASSES_JSON, CLASSES_TEXT


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10gbit", 10**10), ("10Gbit", 10**10), ("160Mbit", 160 * 10**6), ("1.5mbit", 1_500_000), ("800kbit", 800_000),
        ("1gibit", 2**30), ("100mbps", 800 * 10**6), ("125000000bps", 10**9), ("1tbit", 10**12), ("123456Kbit", 123_456_000),
        ("9600", 9600), ("9600bit", 9600), (" 1gbit ", 10**9), (25 * 10**9, 25 * 10**9),
        ("10g", None), ("10 gbit", None), ("fast", None), ("", None), ("-1gbit", None), ("10gbit/s", None), (None, None),
        ("9" * 5000, None), (10**400, None), ("\N{ARABIC-INDIC DIGIT ONE}gbit", None),
    ],
)  # fmt: skip
def test_rates(text, bits):
    assert tc.parse_rate(text) == bits


@pytest.mark.parametrize("bits", [1, 999, 1000, 1500, 10**6, 25 * 10**9, 123_456_789, 10**12])
def test_a_rate_is_read_as_it_is_written(bits):
    assert tc.parse_rate(tc.rate_text(bits)) == bits


def test_classes_are_the_same_in_both_forms():
    found = tc.parse_classes(CLASSES_TEXT)
    assert found == tc.parse_classes(CLASSES_JSON)
    assert found == [
        {"handle": "a11e:1", "parent": None, "prio": 0, "rate": 200_000_000, "ceil": 200_000_000},
        {"handle": "a11e:10", "parent": "a11e:1", "prio": 0, "rate": 160_000_000, "ceil": 200_000_000},
        {"handle": "a11e:20", "parent": "a11e:1", "prio": 1, "rate": 40_000_000, "ceil": 200_000_000},
    ]


@pytest.mark.parametrize("text", [None, "", "[]", "no text of tc's", '[{"class":"fq_codel"}]'])
def test_no_classes(text):
    assert tc.parse_classes(text) == []


def test_qdiscs_by_interface():
    printed = [
        {"kind": "mq", "handle": "0:", "dev": "eth0", "root": True, "options": {}},
        {"kind": "fq_codel", "handle": "0:", "dev": "eth0", "parent": ":1", "options": {"limit": 10240}},
        {"kind": "clsact", "handle": "ffff:", "dev": "eth0", "parent": "ffff:fff1"},
        {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "options": {}},
    ]
    found = tc.parse_qdiscs(json.dumps(printed))
    assert found["eth0"]["root"] == {"kind": "mq", "handle": "0:", "options": {}}
    assert found["eth0"]["ingress"] == "clsact" and found["lo"]["ingress"] is None
    assert [one["kind"] for one in found["eth0"]["children"]] == ["fq_codel"]
    assert tc.parse_qdiscs(None) == {} and tc.parse_qdiscs("Error") == {}


def qdisc(kind, handle="8001:", **options):
    return {"kind": kind, "handle": handle, "options": options}


@pytest.mark.parametrize(
    ("root", "children", "restorable"),
    [
        (None, [], True),
        (qdisc("mq", "0:"), [qdisc("fq_codel", "0:")], True),
        (qdisc("fq", "0:", limit=10000), [], True),
        (qdisc("pfifo", limit=77), [], True),
        (qdisc("bfifo", limit=77), [], True),
        (qdisc("pfifo_fast", bands=3), [], True),
        (qdisc("mq"), [qdisc("pfifo_fast", "0:")], True),
        (qdisc("mq"), [qdisc("fq", "8002:")], False),
        # Rounded, so that it would come back another.
        (qdisc("tbf", rate=125000, burst=10240, lat=50000), [], False),
        (qdisc("fq_codel", limit=10240, target=4999), [], False),
        (qdisc("htb", "1:", default="0x20"), [], False),
        (qdisc("pfifo", limit=7, new=1), [], False),
    ],
)
def test_what_can_be_made_again(root, children, restorable):
    assert tc.is_restorable({"root": root, "children": children}) is restorable


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ('[{"kind":"u32","options":{"actions":[{"kind":"mirred","to_dev":"ifb-eth0"}]}}]', "ifb-eth0"),
        # iproute2 5 prints text in spite of -j.
        ("\taction order 1: mirred (Egress Redirect to device ifb-eth0) stolen\n", "ifb-eth0"),
        ("[]", None),
        (None, None),
    ],
)
def test_where_arriving_packets_go(text, device):
    assert tc.parse_redirect(text) == device


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('[{"options":{"flowid":"a11e:20"}},{"options":{"flowid":"a11e:10"}},{"options":{"fh":"800:"}}]', 2),
        ("order 2048 key ht 800 bkt 0 *flowid a11e:20 not_in_hw\nfh 801: ht divisor 1\n", 1),
        ('[{"options":{"flowid":"1:20"}}]', 0),
        (None, 0),
    ],
)
def test_filters_that_choose_a_class(text, count):
    assert tc.count_filters(text) == count
