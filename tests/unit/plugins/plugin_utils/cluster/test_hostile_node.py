# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node says anything: what the others get is, byte by byte, what they get without it, and a problem names it."""

from __future__ import annotations

import base64
import copy
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._imex_nodes import imex_nodes
from ansible_collections.allreduce.gpu.plugins.filter._ssh_cluster import ssh_cluster
from ansible_collections.allreduce.gpu.plugins.filter._ssh_key_kind import ssh_key_kind
from ansible_collections.allreduce.gpu.plugins.filter._verification_cluster import FilterModule as VerificationCluster
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import summary, verdict, verification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.address import neighbours
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.hosts import cluster_problems, misplaced
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.members import KEYS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import BY_NAME
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.request import request as firewall
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.peers import peers, targets
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.request import request as qos
from ansible_collections.allreduce.gpu.tests.report import simulated
from hypothesis import given, settings
from hypothesis import strategies as st

verification_cluster = VerificationCluster().filters()["_verification_cluster"]
GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2", "gpu-3", "gpu-9"], "controllers": ["ctl"]}
NODES, EVIL, ABSENT = ["gpu-1", "gpu-2", "gpu-9"], "gpu-9", "gpu-3"


def key(name, kind="ssh-ed25519"):
    blob = len(kind).to_bytes(4, "big") + kind.encode() + name.encode()
    return f"{kind} {base64.b64encode(blob).decode()}"


def facts(number, **more):
    return {
        "default_ipv4": {"address": f"10.0.0.{number}"},
        "nodename": f"gpu-{number}.cluster.local",
        "ssh_host_key_ed25519_public": key(f"host{number}").split()[1],
        "ssh_host_key_ed25519_public_keytype": "ssh-ed25519",
        "gpu_node": {"fabric": {"domain": "rack.1"}},
        **more,
    }


def entry(number, **more):
    known = {"name": f"gpu-{number}", "address": f"10.0.0.{number}", "nodename": f"gpu-{number}.cluster.local"}
    return {**known, "sources": [], "host_key": key(f"host{number}"), "public_key": key(f"user{number}"), **more}


def record(entries, time=1.0):
    return {"text": entries if isinstance(entries, str) else json.dumps(entries), "time": time}


def node(number, **more):
    keys = {"public_key": f"{key(f'user{number}')} trainer@gpu-{number}", "next_public_key": None, "rotated": True}
    keys["record"] = record([entry(one) for one in (1, 2, 3)])
    return {"ansible_facts": facts(number), "monitoring_state": "present", KEYS: keys, "groups": GROUPS, **more}


HONEST = {
    "gpu-1": node(1),
    "gpu-2": node(2),
    ABSENT: {"monitoring_state": "present", "gpu_cluster_address": "10.0.0.3"},
    "ctl": {"gpu_cluster_address": "10.0.0.100", "monitoring_state": "present"},
}


def generated(hostvars):
    """What the honest nodes get: {file or declaration: lines}."""
    present = [one for one in NODES if one in hostvars]
    nodes = [one for one in GROUPS["gpu_nodes"] if one in hostvars]
    ssh = ssh_cluster(nodes, hostvars, present)
    assert "problem" not in ssh
    found = {name: ssh[name].splitlines() for name in ("hosts", "known_hosts", "authorized_keys")}
    found["record"] = [json.dumps(one, sort_keys=True) for one in ssh["nodes"]]
    found["kind"] = [ssh_key_kind(nodes, hostvars)]
    groups = {name: [one for one in members if one in hostvars] for name, members in GROUPS.items()}
    for name, one in (("firewall", firewall), ("qos", qos)):
        known = {**neighbours(hostvars, nodes, BY_NAME[name].reads_of_others).values, "gpu-1": hostvars["gpu-1"]}
        found[name] = [*one("gpu-1", known, groups["gpu_nodes"]).peers]
    known = neighbours(hostvars, [*nodes, "ctl"], BY_NAME["monitoring"].reads_of_others).values
    found["targets"] = [json.dumps(one) for job in targets(peers(known, groups, "absent")).values() for one in job]
    found["imex"] = [one for addresses in imex_nodes(nodes, hostvars).values() for one in addresses]
    found["addresses"] = [json.dumps(one) for one in verification_cluster(nodes, hostvars)["addresses"].items()]
    return found


WITHOUT = generated(HONEST)
GONE = "no such key"


def places(value, path=()):
    """The paths of all that a document has, keys and the first element of each list."""
    below = value.items() if isinstance(value, dict) else [(0, value[0])] if isinstance(value, list) and value else ()
    for key, one in below:
        yield (*path, key)
        yield from places(one, (*path, key))


def lied(document, path, said):
    """A copy with another value at a path, or without it."""
    found = copy.deepcopy(document)
    place = found
    for key in path[:-1]:
        place = place[key]
    if said == GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = said
    return found


def named(hostvars):
    """The nodes that somebody is told about."""
    ssh = ssh_cluster(NODES + [ABSENT], hostvars, NODES)
    _fit, problems = misplaced(hostvars)
    return {*ssh["left_out"], *(one.subject for one in problems), *(EVIL for note in ssh["notes"] if EVIL in note)}


def judge(evil):
    """Compare; whether the evil node was left out."""
    hostvars = {**HONEST, EVIL: evil}
    found, out = generated(hostvars), named(hostvars)
    assert out <= {EVIL}
    for name, lines in found.items():
        added = [line for line in lines if line not in WITHOUT[name]]
        assert [line for line in lines if line not in added] == WITHOUT[name], name
        # What is added is about this node alone: one line, which begins with or names its own address.
        assert len(added) <= 2 and all("10.0.0.9" in line for line in added), (name, added)
    return EVIL in out


def test_an_honest_node_is_added():
    assert judge(node(9)) is False


BAD_FACTS = {
    "name_with_a_line": {"nodename": "gpu-9\n10.0.0.9 pypi.org"},
    "wildcard": {"nodename": "x,*"},
    "authority": {"nodename": "@cert-authority *"},
    "tab": {"nodename": "gpu-9\tpypi.org"},
    "foreign_domain": {"nodename": "pypi.org"},
    "name_of_another": {"nodename": "gpu-1"},
    "long_name_of_another": {"nodename": "gpu-1.cluster.local"},
    "controller": {"nodename": "ctl"},
    "trailing_dot": {"nodename": "gpu-9."},
    "long_label": {"nodename": "a" * 64},
    "unicode": {"nodename": "gpü-9"},
    "no_text": {"nodename": ["gpu-9"]},
    "large": {"nodename": "x" * 10_000_000},
    "template": {"nodename": "{{ lookup('pipe', 'id') }}"},
    "everybody": {"default_ipv4": {"address": "0.0.0.0/0"}},
    "network": {"default_ipv4": {"address": "10.0.0.0/24"}},
    "unspecified": {"default_ipv4": {"address": "::"}},
    "loopback": {"default_ipv4": {"address": "127.0.0.9"}},
    "multicast": {"default_ipv4": {"address": "224.0.0.1"}},
    "link_local": {"default_ipv4": {"address": "169.254.10.0"}},
    "mapped": {"default_ipv4": {"address": "::ffff:10.0.0.9"}},
    "address_with_a_line": {"default_ipv4": {"address": "10.0.0.9\n10.0.0.1"}},
    "pattern": {"default_ipv4": {"address": "10.0.0.9,*"}},
    "address_of_another": {"default_ipv4": {"address": "10.0.0.3"}},
    "no_mapping": {"default_ipv4": "10.0.0.9"},
    "two_host_keys": {"ssh_host_key_ed25519_public": key("a").split()[1] + "\n* " + key("b")},
    "kind_with_a_line": {"ssh_host_key_ed25519_public_keytype": "ssh-ed25519 AAAA\n@cert-authority * ssh-ed25519"},
    "other_kind": {"ssh_host_key_ed25519_public_keytype": "ssh-rsa"},
    "no_base64": {"ssh_host_key_rsa_public": "!!!"},
    "fips_of_text": {"gpu_node_state": {"fips": "yes"}},
}  # fmt: skip
BAD_KEYS = {
    "two_keys": {"public_key": f"{key('a')}\n{key('b')}"},
    "options": {"public_key": f'command="id" {key("a")}'},
    "list": {"public_key": [key("a")]},
    "next": {"next_public_key": "ssh-ed25519 AAAA"},
    "record_of_a_list": {"record": [1]},
    "record_of_text": {"record": "x"},
    "no_record": {"record": record("no JSON")},
    "deep_record": {"record": record("[" * 100_000)},
    "number_of_a_record": {"record": record([], float("nan"))},
    "huge_time": {"record": record([], 10**400)},
    "rotated": {"rotated": "no"},
}


@pytest.mark.parametrize("said", BAD_FACTS.values(), ids=BAD_FACTS)
def test_facts_that_cannot_be_leave_the_node_out(said):
    assert judge({**node(9), "ansible_facts": facts(9, **said)})


@pytest.mark.parametrize("said", BAD_KEYS.values(), ids=BAD_KEYS)
def test_keys_that_cannot_be_leave_the_node_out(said):
    assert judge({**node(9), KEYS: {**node(9)[KEYS], **said}})


ENTRIES = {
    "from_anywhere": entry(3, sources=["*"]),
    "from_everybody": entry(3, sources=["0.0.0.0/1", "128.0.0.0/1"]),
    "from_itself": entry(3, address="10.0.0.9", public_key=key("evil"), host_key=key("evil")),
    "without_address": entry(3, address='*",command="id'),
    "two_keys": entry(3, public_key=f"{key('a')}\n{key('b')}"),
    "name": entry(3, nodename="pypi.org\n* x"),
    "pin_of_another": entry(1, host_key=key("evil")),
    "no_mapping": 7,
}


@pytest.mark.parametrize("said", ENTRIES.values(), ids=ENTRIES)
def test_a_record_of_others_counts_less_than_theirs(said):
    """It is newer than those of the others, of which more say something else."""
    judge({**node(9), KEYS: {**node(9)[KEYS], "record": record([said], 2e9)}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["0.0.0.0/0", "::", "10.0.0.9", "gpu-9", "gpu-1", "x\ny", "*", key("x"), "\x1b[2J"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "default_ipv4": JSON | st.fixed_dictionaries({"address": JSON}),
        **dict.fromkeys(("nodename", "hostname", "gpu_node", "gpu_node_state", "gpu_stack"), JSON),
        **dict.fromkeys(("ssh_host_key_ed25519_public", "ssh_host_key_ed25519_public_keytype"), JSON),
        "ssh_host_key_rsa_public": JSON,
    },
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "public_key": JSON,
        "next_public_key": JSON,
        "rotated": JSON,
        "record": JSON | st.fixed_dictionaries({"text": JSON | JSON.map(json.dumps), "time": JSON}),
    },
)


def fit_facts(drawn):
    """The facts of an honest node, with what was drawn."""
    return {**facts(9), **drawn} if isinstance(drawn, dict) else drawn


@settings(max_examples=100, deadline=None)
@given(said=JSON | FACTS.map(fit_facts), answers=JSON | ANSWERS)
def test_whatever_one_node_says(said, answers):
    """Text that fits by chance may be its own; nothing is about another node, and nothing is raised."""
    hostvars = {**HONEST, EVIL: {**node(9), "ansible_facts": said, KEYS: answers}}
    found = generated(hostvars)
    assert named(hostvars) <= {EVIL}
    for name, lines in found.items():
        assert [line for line in lines if line in WITHOUT[name]] == WITHOUT[name], name
        assert all(len(line.splitlines()) == 1 for line in lines)
    cluster_problems(misplaced(hostvars)[0])


VERIFIED = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("__verify_probe", "__verify_health", "__verify_speeds", "__verify_gpu_compute", "__verify_monitoring"), JSON),
)  # fmt: skip
FACTS_OF_MODULES = (
    "distribution", "kernel", "processor_vcpus", "memtotal_mb", "gpu_node", "gpu_stack", "gpu_node_state", "gpu_pcie", "gpu_qos", "gpu_rdma",
    "gpu_firewall", "gpu_tuning", "gpu_scratch", "gpu_nccl", "default_ipv4",
)  # fmt: skip
MEASURED = st.fixed_dictionaries({}, optional=dict.fromkeys(FACTS_OF_MODULES, JSON))


@settings(max_examples=100, deadline=None)
@given(said=JSON | MEASURED, answers=VERIFIED)
def test_a_verification_names_it_and_judges_the_others(said, answers):
    others = {name: {"ansible_facts": facts(number)} for number, name in ((1, "gpu-1"), (2, "gpu-2"))}
    alone = verification(list(others), list(others), others, {"skipped": True}, "")["nodes"]
    nodes = {**others, EVIL: {"ansible_facts": said, **answers}}
    found = verification(list(nodes), list(nodes), nodes, {"skipped": True}, "")
    assert {name: found["nodes"][name] for name in others} == alone
    json.dumps(found["nodes"][EVIL], allow_nan=False)
    assert found["nodes"][EVIL]["checks"]


MACHINE = simulated.measured("a40")["gpu_node"]
# Of a GPU and an adapter, as they are measured: where a lie can be put.
PLACES = [(kind, 0, *rest) for kind in ("gpus", "nics") for one in MACHINE[kind][:1] for rest in places(one)]


@settings(max_examples=60, deadline=None)
@given(place=st.sampled_from(PLACES), said=st.none() | st.just(GONE) | st.integers() | st.text(max_size=3) | JSON)
def test_a_machine_with_one_lie_is_compared_with_the_others_or_left_out(place, said):
    nodes = {f"gpu-{one}": {"ansible_facts": {**facts(one), "gpu_node": MACHINE}} for one in (1, 2)}
    alone = verification(list(nodes), list(nodes), nodes, {"skipped": True}, "")
    nodes[EVIL] = {"ansible_facts": {**facts(9), "gpu_node": lied(MACHINE, place, said)}}
    found = verification(list(nodes), list(nodes), nodes, {"skipped": True}, "")
    assert {name: found["nodes"][name] for name in alone["nodes"]} == alone["nodes"]
    named = {one["name"] for one in alone["cluster_checks"]}
    assert named <= {one["name"] for one in found["cluster_checks"]}
    assert all(line.isprintable() for line in summary(found)["lines"])


def test_no_verdict_commands_a_terminal():
    check = {"name": "\x1b[2Jmain\r_python", "node": "gpu-9\x9b31m", "status": "failed"}
    document = {"nodes": {EVIL: {"checks": [check]}}, "cluster_checks": []}
    assert verdict(document).replace("\N{REPLACEMENT CHARACTER}", "").replace("\n", "").isprintable()


def test_no_node_fills_the_terminal():
    said = dict.fromkeys(("expected", "measured", "reason", "fix", "check", "gpu", "action"), "x " * 500000)
    check = {**said, "name": "nvidia_smi", "node": EVIL, "status": "failed"}
    health = {"verdict": "ok", "notes": [said]}
    document = {"nodes": {EVIL: {"checks": [check], "gpu_health": health}}, "cluster_checks": []}
    lines = summary(document)["lines"]
    assert 2000 < len("".join(lines)) < 20_000 and sum("(1000" in line for line in lines) >= 3


def test_what_has_the_form_of_an_answer_and_cannot_be_judged_is_its_own_fault():
    asked = {"__verify_network": {"peers": ["gpu-1", "gpu-2", "gpu-9"], "mtu": 0, "rounds": 0, "bandwidth": False}}
    others = {name: {"ansible_facts": facts(number), **asked} for number, name in ((1, "gpu-1"), (2, "gpu-2"))}
    network = {"own_name": ["\x1b[2Jgpu-9"], "paths": {}}
    probe = {"nvidia_smi": None, "clock_synchronised": True, "environments": {}, "peers": {}, "network": network}
    nodes = {**others, EVIL: {"ansible_facts": facts(9), **asked, "__verify_probe": {"node_probe": probe}}}
    found = verification(list(nodes), list(nodes), nodes, {"skipped": True}, "")
    assert list(found["nodes"]) == list(nodes)
    assert [one["status"] for one in found["nodes"][EVIL]["checks"]] == ["failed"]
    said = json.dumps(found["nodes"][EVIL])
    assert "cannot be judged" in said and "\\u001b" not in said


def test_from_where_a_node_comes_only_the_inventory_says():
    """Even where nobody else knows the node that is away."""
    said = record([entry(3, sources=["128.0.0.0/1"], address="10.0.0.66", nodename="pypi.org")])
    hostvars = {EVIL: {**node(9), KEYS: {**node(9)[KEYS], "record": said}}, ABSENT: {"gpu_cluster_address": "10.0.0.3"}}
    found = ssh_cluster([EVIL, ABSENT], hostvars, [EVIL])
    assert f'from="10.0.0.3" {key("user3")} gpu-3' in found["authorized_keys"]
    assert "128.0.0.0" not in found["authorized_keys"] and "pypi.org" not in found["hosts"]
    hostvars[ABSENT]["cluster_ssh_extra_addresses"] = ["10.1.0.0/16"]
    assert (
        f'from="10.0.0.3,10.1.0.0/16" {key("user3")} gpu-3'
        in ssh_cluster([EVIL, ABSENT], hostvars, [EVIL])["authorized_keys"]
    )
