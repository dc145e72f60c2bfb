# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fact gpu_qos from what programs print; module settings.qos has the same of real interfaces."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import qos_facts
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import CLASSES_JSON

ADDRESSES = [
    {"ifname": "lo", "flags": ["LOOPBACK", "UP"], "addr_info": [{"local": "127.0.0.1"}]},
    {
        "ifname": "eth0", "flags": ["UP"],
        "addr_info": [{"local": "10.0.0.1"}, {"local": "fd00::1"}, {"local": "fd00::99", "temporary": True}],
    },
    {"ifname": "eth1", "flags": [], "addr_info": []},
]  # fmt: skip
QDISCS = [
    {"kind": "htb", "handle": "a11e:", "dev": "eth0", "root": True, "options": {"default": "0x20"}},
    {"kind": "fq_codel", "handle": "a110:", "dev": "eth0", "parent": "a11e:10", "options": {}},
    {"kind": "fq_codel", "handle": "a120:", "dev": "eth0", "parent": "a11e:20", "options": {}},
    {"kind": "ingress", "handle": "ffff:", "dev": "eth0", "parent": "ffff:fff1", "options": {}},
    {"kind": "noqueue", "handle": "0:", "dev": "eth1", "root": True, "options": {}},
]
RULE = {"rule": {"family": "inet", "table": "allreduce_qos", "comment": "allreduce.gpu 0123", "expr": []}}
PRINTED = {
    "tc -V": "tc utility", "nft --version": "nftables v1.0.6",
    "ip -j address show": json.dumps(ADDRESSES),
    "tc -j qdisc show": json.dumps(QDISCS),
    "tc -j class show dev eth0": CLASSES_JSON,
    "tc -j filter show dev eth0 ingress": '[{"options":{"actions":[{"kind":"mirred","to_dev":"ifb-eth0"}]}}]',
    "tc -j filter show dev eth0": "[]",
    "nft -j list table inet allreduce_qos": json.dumps({"nftables": [{"metainfo": {}}, RULE]}),
}  # fmt: skip


def programs(printed):
    return lambda arguments: printed.get(" ".join(arguments))


def test_the_fact(tmp_path):
    files = {"/sys/class/net/eth0/speed": "25000\n", "/sys/class/net/eth1/speed": "-1\n", qos_facts.RECORD: "{}"}
    fact = qos_facts.read_qos(tree(tmp_path, files), programs(PRINTED))
    assert (fact["recorded"], fact["tc"], fact["nft"], fact["table"]) == (True, True, True, "0123")
    assert set(fact["interfaces"]) == {"eth0", "eth1"} and fact["kernel"] == {}
    eth0 = fact["interfaces"]["eth0"]
    assert (eth0["addresses"], eth0["speed"]) == (["10.0.0.1", "fd00::1"], 25000)
    shaped = eth0["shaped"]
    assert (shaped["leaf"], shaped["redirect"], len(shaped["classes"])) == ("fq_codel", "ifb-eth0", 3)
    assert fact["interfaces"]["eth1"]["speed"] is None
    assert fact["interfaces"]["eth1"]["shaped"]["classes"] == []


def test_a_node_without_programs(tmp_path):
    fact = qos_facts.read_qos(tree(tmp_path, {}), programs({}), ["training.slice"], probe=True)
    assert (fact["tc"], fact["nft"], fact["interfaces"], fact["table"], fact["cgroups"]) == (False, False, {}, None, [])
    assert set(fact["kernel"].values()) == {None}, "what cannot be tried is not known"


def test_what_the_kernel_lacks():
    printed = {"unshare --net true": "", "unshare --net tc qdisc add dev lo root handle 1: htb": ""}
    assert qos_facts.read_kernel(programs(printed)) == {"htb": True, "fq_codel": False, "ifb": False}


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (None, None),
        ("Error: No such file", None),
        (json.dumps({"nftables": [{"rule": {"expr": []}}]}), None),
        (json.dumps({"nftables": [{"rule": {"comment": "of somebody else"}}]}), None),
        (json.dumps({"nftables": [{"rule": {"comment": "allreduce.gpu abc"}}]}), "abc"),
    ],
)
def test_the_digest(text, digest):
    assert qos_facts.parse_digest(text) == digest
