# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of nftables, filters of tc and names of units; nft and tc of this machine take the text where they can be had."""

import json
import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.qos_facts import parse_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.decide import Shaping, Share
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.ingress import filters, masks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.nftables import table
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.request import Request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.plan import escape
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import lacking
from hypothesis import given
from hypothesis import strategies as st

PEERS = ("10.0.0.2", "10.1.0.0/16", "fd00::2")
REQUESTS = {
    "peers": Request(peers=PEERS),
    "nobody else": Request(),
    "ports": Request(peers=PEERS, ports=((29500, 29500), (50000, 50999))),
    "dscp": Request(peers=PEERS, dscp=(26, 46)),
    "both": Request(peers=PEERS, dscp=(46,), ports=((5201, 5201),)),
}
GROUPS = Request(peers=PEERS, cgroups=("training.slice/job",))


def rules(wanted):
    return [line.strip() for line in table(wanted, ["eth0"])[0].splitlines() if "priority set" in line]


def test_rules_by_what_is_declared():
    assert rules(REQUESTS["peers"]) == [
        f"{family} daddr @peers{version} meta l4proto {{ tcp, udp }} th sport 1024-65535 th dport 1024-65535 "
        "meta priority set a11e:10"
        for version, family in ((4, "ip"), (6, "ip6"))
    ]
    assert rules(REQUESTS["both"])[:3] == [
        "ip daddr @peers4 meta l4proto { tcp, udp } th dport { 5201 } meta priority set a11e:10",
        "ip daddr @peers4 meta l4proto { tcp, udp } th sport { 5201 } meta priority set a11e:10",
        "ip daddr @peers4 ip dscp { 46 } meta priority set a11e:10",
    ]
    assert rules(GROUPS) == [
        f'{family} daddr @peers{version} socket cgroupv2 level 2 "training.slice/job" meta priority set a11e:10'
        for version, family in ((4, "ip"), (6, "ip6"))
    ]


def test_the_number_of_rules_is_that_of_no_peers():
    many = Request(peers=tuple(f"10.0.{n // 250}.{n % 250 + 1}" for n in range(1000)))
    assert len(rules(many)) == len(rules(REQUESTS["nobody else"]))


def test_the_digest_is_that_of_the_rules():
    texts = {table(one, ["eth0"]) for one in REQUESTS.values()} | {table(REQUESTS["peers"], ["eth1"])}
    assert len({digest for _text, digest in texts}) == len(texts)
    assert table(REQUESTS["peers"], ["eth0"]) == table(REQUESTS["peers"], ["eth0"])


def apart(*command, text=""):
    return subprocess.run(["unshare", "--net", *command], input=text, capture_output=True, text=True, check=False)


@pytest.mark.skipif(bool(lacking("nft")), reason=str(lacking("nft")))
@pytest.mark.parametrize("name", REQUESTS)
def test_nft_takes_the_rules_and_shows_the_digest(name):
    text, digest = table(REQUESTS[name], ["eth0", "bond0.7"])
    # Twice, as after a change, and once more without the table.
    script = f"nft -f - <<'END' && nft -j list table inet allreduce_qos\n{text}{text}END\n"
    done = apart("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert parse_digest(done.stdout) == digest


@pytest.mark.skipif(bool(lacking("nft")), reason=str(lacking("nft")))
def test_nft_knows_the_words_for_control_groups():
    """Whether the group is there, is the kernel's to say: the grammar is nft's."""
    done = apart("nft", "-c", "-f", "-", text=table(GROUPS, ["eth0"])[0])
    assert "syntax error" not in done.stderr and ("cgroupv2 path fails" in done.stderr or done.returncode == 0)


@pytest.mark.skipif(bool(lacking("tc")), reason=str(lacking("tc")))
@pytest.mark.parametrize("name", REQUESTS)
def test_tc_takes_the_filters(name):
    words = filters(REQUESTS[name])
    lines = ["qdisc add dev lo root handle a11e: htb default 20"]
    lines += [f"filter add dev lo parent a11e: {one}" for one in words]
    done = apart("tc", "-batch", "-", text="\n".join(lines) + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(words) is bool(REQUESTS[name].peers)


def test_privileged_ports_are_nobodys_training():
    assert filters(Request(peers=("10.0.0.2",)))[0] == (
        "protocol ip prio 4 u32 match ip src 10.0.0.2 match ip protocol 6 0xff match ip sport 0 0xfc00 flowid a11e:20"
    )
    assert filters(Request(peers=("10.0.0.2",)))[-1] == (
        "protocol ip prio 4 u32 match ip src 10.0.0.2 match ip protocol 17 0xff flowid a11e:10"
    )


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535))
def test_masks_match_a_range_and_nothing_else(one, other, port):
    first, last = sorted((one, other))
    found = masks(first, last)
    assert any(port & mask == value for value, mask in found) == (first <= port <= last)
    assert all(first & mask == value for value, mask in found[:1])
    assert len(found) <= 30


@pytest.mark.parametrize("name", ["eth0", "bond0.7", "ib-0", "br lan", ".x", "a_b:1", "wlü0"])
def test_names_of_units(name):
    assert escape("ib-0") == r"ib\x2d0" and escape(".x-") == r"\x2ex\x2d"
    if shutil.which("systemd-escape"):
        escaped = subprocess.run(["systemd-escape", "--", name], capture_output=True, text=True, check=True)
        assert escape(name) == escaped.stdout.strip()


def test_the_options_of_the_module():
    shaping = Shaping("ib-0", 10**9, (Share("10", 8 * 10**8, 10**9, 0), Share("20", 2 * 10**8, 10**9, 1)), "fq_codel")
    found = plan([shaping], REQUESTS["peers"], [{"path": "/etc/systemd/system/x.service", "content": "x"}])
    assert found["interfaces"] == [{
        "name": "ib-0", "rate": 10**9, "leaf": "fq_codel", "ifb": "", "filters": [],
        "classes": [
            {"minor": "10", "rate": 8 * 10**8, "ceil": 10**9, "prio": 0},
            {"minor": "20", "rate": 2 * 10**8, "ceil": 10**9, "prio": 1},
        ],
    }]  # fmt: skip
    files = {one["path"]: one for one in found["files"]}
    declared = json.loads(files["/etc/allreduce/qos.json"]["content"])
    assert declared == {"digest": found["digest"], "interfaces": found["interfaces"]}
    assert files["/etc/allreduce/qos.nft"]["content"] == found["table"]
    assert {files[f"/etc/allreduce/qos.{kind}"]["mode"] for kind in ("json", "nft")} == {"0600"}
    link = r"/etc/systemd/system/sys-subsystem-net-devices-ib\x2d0.device.wants/allreduce-qos@ib\x2d0.service"
    assert files[link]["link"] == "/etc/systemd/system/allreduce-qos@.service"


def test_the_table():
    text, digest = table(Request(peers=PEERS, dscp=(26, 46), cgroups=("training.slice/job",)), ["eth0", "bond0.7"])
    assert (
        text
        == f"""\
# Written by role allreduce.gpu.qos; changes made here are lost.
add table inet allreduce_qos
delete table inet allreduce_qos
table inet allreduce_qos {{
\tset peers4 {{
\t\ttype ipv4_addr
\t\tflags interval
\t\telements = {{ 10.0.0.2, 10.1.0.0/16 }}
\t}}
\tset peers6 {{
\t\ttype ipv6_addr
\t\telements = {{ fd00::2 }}
\t}}
\tchain postrouting {{
\t\ttype filter hook postrouting priority -150; policy accept;
\t\toifname != {{ "eth0", "bond0.7" }} return comment "allreduce.gpu {digest}"
\t\tip daddr @peers4 ip dscp {{ 26, 46 }} meta priority set a11e:10
\t\tip6 daddr @peers6 ip6 dscp {{ 26, 46 }} meta priority set a11e:10
\t}}
\tchain output {{
\t\ttype filter hook output priority -150; policy accept;
\t\toifname != {{ "eth0", "bond0.7" }} return
\t\tip daddr @peers4 socket cgroupv2 level 2 "training.slice/job" meta priority set a11e:10
\t\tip6 daddr @peers6 socket cgroupv2 level 2 "training.slice/job" meta priority set a11e:10
\t}}
}}
"""
    )
    assert len(digest) == 16 and set(digest) <= set("0123456789abcdef")


TWO = ("10.0.0.2", "fd00::2")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Request(peers=TWO, dscp=(26, 46)), [
            "protocol ip prio 4 u32 match ip src 10.0.0.2 match ip dsfield 104 0xfc flowid a11e:10",
            "protocol ip prio 4 u32 match ip src 10.0.0.2 match ip dsfield 184 0xfc flowid a11e:10",
            "protocol ipv6 prio 6 u32 match ip6 src fd00::2 match ip6 priority 104 0xfc flowid a11e:10",
            "protocol ipv6 prio 6 u32 match ip6 src fd00::2 match ip6 priority 184 0xfc flowid a11e:10",
        ]),
        (Request(peers=TWO[:1], ports=((29500, 29500), (50000, 50003))), [
            f"protocol ip prio 4 u32 match ip src 10.0.0.2 match ip protocol {protocol} 0xff match ip {side} {port} flowid a11e:10"
            for protocol in (6, 17) for side in ("sport", "dport") for port in ("29500 0xffff", "50000 0xfffc")
        ]),
        (Request(peers=TWO[1:]), [
            *(
                f"protocol ipv6 prio 6 u32 match ip6 src fd00::2 match ip6 protocol {protocol} 0xff match ip6 {side} 0 0xfc00 flowid a11e:20"
                for protocol in (6, 17) for side in ("sport", "dport")
            ),
            "protocol ipv6 prio 6 u32 match ip6 src fd00::2 match ip6 protocol 6 0xff flowid a11e:10",
            "protocol ipv6 prio 6 u32 match ip6 src fd00::2 match ip6 protocol 17 0xff flowid a11e:10",
        ]),
        (Request(), []),
    ],
)  # fmt: skip
def test_filters_are_told_whole(wanted, expected):
    assert filters(wanted) == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 65535, [(0, 0)]),
        (0, 1023, [(0, 0xFC00)]),
        (1024, 65535, [(1024, 0xFC00), (2048, 0xF800), (4096, 0xF000), (8192, 0xE000), (16384, 0xC000), (32768, 0x8000)]),
        (7, 7, [(7, 0xFFFF)]),
        (1, 4, [(1, 0xFFFF), (2, 0xFFFE), (4, 0xFFFF)]),
    ],
)  # fmt: skip
def test_masks_are_as_few_as_there_can_be(first, last, expected):
    assert masks(first, last) == expected


def test_the_options_are_plain_and_whole():
    shaping = Shaping("eth0", 10**9, (Share("10", 1, 2, 0),), "", "ifb-eth0", ("x",))
    boot = [{"path": "/etc/systemd/system/x.service", "content": "x", "mode": "0644"}]
    found = plan([shaping], Request(peers=TWO), boot)
    assert list(found) == ["interfaces", "table", "digest", "files"]
    (one,) = found["interfaces"]
    assert (one["ifb"], one["filters"]) == ("ifb-eth0", ["x"])
    assert (found["table"], found["digest"]) == table(Request(peers=TWO), ["eth0"])
    assert [one["path"] for one in found["files"]] == [
        "/etc/allreduce/qos.json", "/etc/allreduce/qos.nft", boot[0]["path"],
        "/etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants/allreduce-qos@eth0.service",
    ]  # fmt: skip
    assert found["files"][2] == boot[0] and found["files"][0]["content"].endswith("}\n")
