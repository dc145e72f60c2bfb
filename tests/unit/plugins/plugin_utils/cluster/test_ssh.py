# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every node learns the same about all nodes, and no key works from anywhere but its own node."""

import base64
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._ssh_cluster import ssh_cluster
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.members import KEYS, collect
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.records import read_record
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.ssh import (
    authorized_keys,
    describe_cluster,
    describe_node,
    hosts_lines,
    key_kind,
    known_hosts,
)


def public_key(name, kind="ssh-ed25519"):
    """A public key as OpenSSH writes it, without the comment: its blob begins with the kind's length and name (RFC 4253)."""
    blob = len(kind).to_bytes(4, "big") + kind.encode() + name.encode()
    return f"{kind} {base64.b64encode(blob).decode()}"


HOST, RSA, EC = public_key("host"), public_key("host", "ssh-rsa"), public_key("host", "ecdsa-sha2-nistp256")


def variables(address="10.0.0.1", nodename="n1", **more):
    """Variables of a host as Ansible has them."""
    facts = {
        "default_ipv4": {"address": address},
        "nodename": nodename,
        "ssh_host_key_ed25519_public": HOST.split()[1],
        "ssh_host_key_ed25519_public_keytype": "ssh-ed25519",
        "ssh_host_key_rsa_public": RSA.split()[1],
    }
    return {"ansible_facts": facts, **more}


def node(name, address, nodename=None, **more):
    """A described node."""
    return describe_node(name, variables(address, nodename or name, **more), f"{public_key(name)} trainer@{name}")


def two():
    """A cluster of two."""
    return {"gpu-1": node("gpu-1", "10.0.0.1"), "gpu-2": node("gpu-2", "10.0.0.2")}


def test_keys_work_only_from_the_address_of_their_own_node():
    lines = authorized_keys(two().values()).splitlines()[1:]
    assert lines == [
        f'restrict,pty,from="10.0.0.1" {public_key("gpu-1")} gpu-1',
        f'restrict,pty,from="10.0.0.2" {public_key("gpu-2")} gpu-2',
    ]


def test_extra_addresses_of_a_node_are_allowed_for_it_alone():
    nodes = [node("a", "10.0.0.1", cluster_ssh_extra_addresses=["10.9.0.0/16"]), node("b", "10.0.0.2")]
    assert f'from="10.0.0.1,10.9.0.0/16" {public_key("a")}' in authorized_keys(nodes)
    assert f'from="10.0.0.2" {public_key("b")}' in authorized_keys(nodes)


def test_lines_of_the_site_come_last_and_unchanged():
    assert authorized_keys([], ["ssh-ed25519 AAAA mia"]).splitlines()[-1] == "ssh-ed25519 AAAA mia"


def test_host_keys_are_known_by_name_and_address():
    assert known_hosts([node("gpu-1", "10.0.0.1", "ip-10-0-0-1")]) == f"gpu-1,ip-10-0-0-1,10.0.0.1 {HOST}"


def test_other_kinds_of_host_keys_serve_where_there_is_no_ed25519():
    found = variables()
    del found["ansible_facts"]["ssh_host_key_ed25519_public"]
    assert describe_node("a", found, None)["host_key"] == RSA


def test_addresses_and_localhost_are_no_names():
    assert hosts_lines([node("10.0.0.1", "10.0.0.1", "localhost.localdomain")]) == ""
    assert known_hosts([node("10.0.0.1", "10.0.0.1", "gpu-1")]) == f"gpu-1,10.0.0.1 {HOST}"


def test_a_host_name_that_two_nodes_share_is_left_out():
    nodes = [node("gpu-1", "10.0.0.1", "debian"), node("gpu-2", "10.0.0.2", "debian")]
    assert hosts_lines(nodes) == "10.0.0.1 gpu-1\n10.0.0.2 gpu-2"


def test_the_name_in_the_inventory_wins_over_anothers_host_name():
    nodes = [node("gpu-1", "10.0.0.1", "gpu-2"), node("gpu-2", "10.0.0.2", "gpu-2")]
    assert hosts_lines(nodes) == "10.0.0.1 gpu-1\n10.0.0.2 gpu-2"


def test_cluster_address_is_preferred_to_the_default_one():
    assert describe_node("a", variables(gpu_cluster_address="192.168.1.5"), None)["address"] == "192.168.1.5"


@pytest.mark.parametrize(
    ("declared", "code", "out"),
    [
        (None, "missing_address", {"a"}),
        ("node-a", "invalid_address", {"a"}),
        ("10.0.0.2", "shared_address", {"a", "b"}),  # both declare it: nobody can tell whose it is
    ],
)
def test_an_address_that_cannot_work_is_refused(declared, code, out):
    hostvars = {
        "a": {**variables(None, "a", gpu_cluster_address=declared), KEYS: keys("a")},
        "b": {**variables("10.0.0.9", "b", gpu_cluster_address="10.0.0.2"), KEYS: keys("b")},
        "c": {**variables("10.0.0.3", "c"), KEYS: keys("c")},
    }
    found = collect("abc", hostvars, "abc")
    assert [problem.code for problem in found["left_out"]] == [code]
    assert [one["name"] for one in found["nodes"]] == sorted({"a", "b", "c"} - out)


def test_nodes_outside_the_run_keep_what_is_recorded():
    full = describe_cluster(["gpu-1", "gpu-2"], two())
    part = describe_cluster(["gpu-1", "gpu-2"], {"gpu-1": two()["gpu-1"]}, recorded(full["nodes"]))
    assert part == full


def test_fresh_facts_win_over_the_record():
    record = recorded(describe_cluster(["gpu-1"], {"gpu-1": node("gpu-1", "10.0.0.9")})["nodes"])
    assert (
        describe_cluster(["gpu-1"], {"gpu-1": node("gpu-1", "10.0.0.1")}, record)["nodes"][0]["address"] == "10.0.0.1"
    )


def test_nodes_that_left_the_inventory_disappear():
    record = recorded(describe_cluster(["gpu-1", "gpu-2"], two())["nodes"])
    part = describe_cluster(["gpu-1"], {"gpu-1": two()["gpu-1"]}, record)
    assert "gpu-2" not in json.dumps(part)


def test_nodes_nothing_is_known_of_are_named():
    assert describe_cluster(["gpu-2", "gpu-1"], {"gpu-1": two()["gpu-1"]})["unknown"] == ["gpu-2"]


def test_order_of_the_inventory_does_not_matter():
    assert describe_cluster(["gpu-2", "gpu-1"], two()) == describe_cluster(["gpu-1", "gpu-2"], two())


def test_node_without_key_yet_is_known_but_not_allowed():
    text = authorized_keys([describe_node("a", variables(), None)])
    assert "from=" not in text


def recorded(nodes):
    """What a node's record has of the nodes."""
    record, problems = read_record("a", {"text": json.dumps(nodes), "time": 1.0})
    assert not problems
    return record.entries


def keys(name="K", **more):
    """What module ssh_keys returns."""
    return {"public_key": f"{public_key(name)} c\n", "next_public_key": None, "rotated": True, "record": None, **more}


def test_filter_collects_what_the_role_registered():
    hostvars = {"gpu-1": {**variables(), "__cluster_ssh_keys": keys()}, "gpu-2": {}}
    found = ssh_cluster(["gpu-1", "gpu-2"], hostvars, ["gpu-1", "other"])
    assert found["unknown"] == ["gpu-2"]
    assert f"{public_key('K')} gpu-1" in found["authorized_keys"]
    assert found["rotating"] is False


def rotating(present, **more):
    """Two nodes, the first of which has its new key already."""
    done, next_key = keys("NEW1"), f"{public_key('NEW2')} c 2026-11"
    todo = keys("OLD2", rotated=False, next_public_key=next_key, **more)
    hostvars = {
        "a": {**variables("10.0.0.1", "a"), "__cluster_ssh_keys": done},
        "b": {**variables("10.0.0.2", "b"), "__cluster_ssh_keys": todo},
    }
    return ssh_cluster(["a", "b"], hostvars, present, rotation="2026-11")


def test_in_a_rotation_old_and_new_keys_are_taken():
    found = rotating(["a", "b"])
    assert found["rotating"] is True
    taken = [line.split(" ", 1)[1] for line in found["authorized_keys"].splitlines()[1:]]
    assert taken == [f"{public_key('NEW1')} a", f"{public_key('OLD2')} b", f"{public_key('NEW2')} b"]
    again = describe_cluster(["a", "b"], {}, recorded(found["nodes"]))
    assert again["authorized_keys"] == found["authorized_keys"], "a node that is away keeps both"


def test_a_rotation_needs_all_nodes():
    assert rotating(["b"]) == {
        "problem": "cluster_ssh_rotate asks for new keys, which needs all nodes at once, and a takes no part in this run; run "
        "again without --limit and serial when they answer, or remove cluster_ssh_rotate."
    }


def test_after_a_rotation_a_part_of_the_nodes_will_do():
    assert "problem" not in rotating(["a"])


def test_the_newest_record_counts():
    def record(key, time):
        return {"text": json.dumps([describe_node("c", variables("10.0.0.3"), public_key(key))]), "time": time}

    for times in ((1.0, 2.0), (2.0, 1.0)):
        hostvars = {
            name: {**variables(f"10.0.0.{i}", name), "__cluster_ssh_keys": keys(name, record=record(f"{time}", time))}
            for i, (name, time) in enumerate(zip("ab", times, strict=True), 1)
        }
        found = ssh_cluster(["a", "b", "c"], hostvars, ["a", "b"])
        assert public_key("2.0") in found["authorized_keys"] and public_key("1.0") not in found["authorized_keys"]


def test_a_changed_host_key_is_refused_until_it_is_accepted():
    def hostvars(key):
        facts = {"ssh_host_key_ed25519_public": key, "nodename": "a", "default_ipv4": {"address": "10.0.0.1"}}
        return {"a": {"ansible_facts": facts, "__cluster_ssh_keys": keys(record={"text": record, "time": 1.0})}}

    old, new = (public_key(name).split()[1] for name in ("old", "new"))
    record = "[]"
    first = ssh_cluster(["a"], hostvars(old), ["a"])
    assert old in first["known_hosts"]
    record = json.dumps(first["nodes"])
    refused = ssh_cluster(["a"], hostvars(new), ["a"])["left_out"]["a"]
    assert refused.startswith("a answers with the host key SHA256:")
    fingerprint = refused.split("host key ")[1].split(",")[0]
    assert f"set cluster_ssh_accept_host_keys: {{a: '{fingerprint}'}}." in refused
    assert "a" in ssh_cluster(["a"], hostvars(new), ["a"], accepted={"a": fingerprint[:-1]})["left_out"]
    assert new in ssh_cluster(["a"], hostvars(new), ["a"], accepted={"a": fingerprint})["known_hosts"]


def test_a_host_is_known_by_the_key_that_it_was_known_by():
    """However many others it has by now; but not where not every node takes that kind."""
    found = variables()
    assert describe_node("a", found, None, pinned=RSA)["host_key"] == RSA
    assert describe_node("a", found, None, pinned=public_key("other", "ssh-rsa"))["host_key"] == HOST
    assert describe_node("a", found, None, "ecdsa", pinned=HOST)["host_key"] == RSA


@pytest.mark.parametrize(
    "content",
    [
        b"root:$6$salt$hash:19000:0:99999:7:::\ndaemon:*:19000\n",  # the user's link to another file, read by root
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n",
        b"ssh-ed25519 c2VjcmV0\n",  # base64 of something else
        public_key("a").replace("ssh-ed25519", "ssh-rsa").encode(),
        public_key("a", "secret").encode(),
        b"ssh-ed25519\n",
        b"ssh-ed25519 \xc3\xa4\n",
        b"\xff\xfe",
        b"",
    ],
)
@pytest.mark.parametrize("which", ["public_key", "next_public_key"])
def test_what_is_no_public_key_is_refused_and_not_repeated(content, which):
    had = keys(**{which: content.decode("utf-8", "replace")})
    hostvars = {"gpu-1": {**variables(), "__cluster_ssh_keys": had}}
    found = ssh_cluster(["gpu-1"], hostvars, ["gpu-1"])
    assert found["left_out"] == {
        "gpu-1": "The public key of the user on gpu-1 (id_ed25519.pub) is not a valid OpenSSH public key; "
        "delete the key pair there; the next run generates a new one."
    }
    assert found["nodes"] == [] and not set(content.decode("utf-8", "replace").split()) & set(str(found).split())


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp521"])
def test_keys_of_every_kind_are_taken(kind):
    assert describe_node("a", variables(), public_key("a", kind))["public_key"] == public_key("a", kind)


def test_filter_says_a_mistake_in_one_sentence():
    hostvars = {"a": {"ansible_facts": {}, "__cluster_ssh_keys": keys()}}
    assert ssh_cluster(["a"], hostvars, ["a"])["left_out"] == {
        "a": "No default IPv4 address on a; set gpu_cluster_address there."
    }


@pytest.mark.parametrize(
    ("states", "kind"),
    [
        ([], "ed25519"),
        ([{"fips": False}, {}, None], "ed25519"),
        ([{"fips": False}, {"fips": True}], "ecdsa"),  # it would take none of the other nodes' keys
    ],
)
def test_one_node_in_fips_mode_decides_the_kind_of_all_keys(states, kind):
    assert key_kind({"ansible_facts": {"gpu_node_state": state}} for state in states) == kind
    assert key_kind([{}]) == "ed25519"


def test_where_a_node_is_in_fips_mode_no_host_is_known_by_an_ed25519_key():
    facts = {
        **variables()["ansible_facts"],
        "ssh_host_key_ecdsa_public": EC.split()[1],
        "ssh_host_key_ecdsa_public_keytype": "ecdsa-sha2-nistp256",
    }
    assert describe_node("a", {"ansible_facts": facts}, None, "ecdsa")["host_key"] == EC
    assert describe_node("a", variables(), None, "ecdsa")["host_key"] == RSA
    assert describe_node("a", {"ansible_facts": facts}, None)["host_key"] == HOST
