# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node says anything about environments and directories: what is decided for the others is what is decided without it."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.plan import QUESTIONS
from hypothesis import given, settings
from hypothesis import strategies as st

EVIL, OTHERS = "gpu-0", ("gpu-1", "gpu-2")
PLACE = {
    "digest": "d", "installed": False, "directory": ".main-0123456789ab", "at": ".main-0123456789ab", "create": True, "seed": "",
    "switch": True, "late": True, "lock": "other==1.0", "conda_lock": "", "compiled": {}, "modules": [],
}  # fmt: skip


def mark(host):
    return f".shared-a1b2c3d4.{host}"


def node(host, address):
    return {
        "__frameworks_places": {"main": PLACE},
        "__frameworks_marker": {"path": f"/opt/allreduce/envs/{mark(host)}"},
        "__frameworks_seen_markers": {"stdout_lines": [mark(host)]},
        "ansible_facts": {"default_ipv4": {"address": address}},
    }


HONEST = {host: node(host, f"10.0.0.{number}") for number, host in enumerate(OTHERS, 1)}


def asked(name, nodes, **own):
    """Answer a question about all nodes as the lookup does: what does not fit leaves its node out."""
    question = QUESTIONS[name]
    found = told(nodes, nodes, question.shared)
    assert {one.subject for one in found.problems} <= {EVIL}
    return question.answer(own, found.values)


def decided(nodes):
    """What is decided for the others."""
    marks = asked("markers", nodes)
    shares = asked("shares", nodes, __frameworks_markers=marks)
    return {host: marks.get(host) for host in OTHERS}, {host: shares[host] for host in OTHERS}


WITHOUT = decided(HONEST)


@pytest.mark.parametrize(
    "path",
    [
        "/opt/allreduce/envs/..",
        "/opt/allreduce/envs/main",
        ["a"],
        f"/opt/{mark('gpu-1')}",
        "-R",
        "",
        7,
        "/\n/.shared-a.gpu-0",
    ],
)
def test_a_mark_decides_nothing_for_others(path):
    evil = {**node(EVIL, "10.0.0.9"), "__frameworks_marker": {"path": path}}
    evil["__frameworks_seen_markers"] = {"stdout_lines": [mark(host) for host in OTHERS]}
    # Everything is there for the others that is everywhere.
    honest = {
        host: {**one, "__frameworks_seen_markers": {"stdout_lines": [mark(host), "..", "main"]}}
        for host, one in HONEST.items()
    }
    marks, shares = decided({EVIL: evil, **honest})
    assert (marks, {host: one["places"] for host, one in shares.items()}) == (
        WITHOUT[0],
        {host: one["places"] for host, one in WITHOUT[1].items()},
    )
    assert all(one["leader"] == host and not one["unsupported"] for host, one in shares.items())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
    | st.sampled_from([10**400, "..", *map(mark, (EVIL, *OTHERS)), "/e/main", f"/e/{mark('gpu-1')}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["os", "environments", "name", "python", "requirements", "lock", "id", "version", "path", "stdout_lines"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
FACTS = st.fixed_dictionaries({}, optional=dict.fromkeys(("gpu_stack", "gpu_node_state", "default_ipv4"), JSON))
ANSWERS = st.fixed_dictionaries({}, optional=dict.fromkeys(("__frameworks_marker", "__frameworks_seen_markers"), JSON))


@settings(max_examples=150, deadline=None)
@given(JSON | FACTS, ANSWERS)
def test_whatever_one_node_says(facts, answers):
    nodes = {EVIL: {**node(EVIL, "10.0.0.9"), **answers, "ansible_facts": facts}, **HONEST}
    marks, shares = decided(nodes)
    assert marks == WITHOUT[0]
    for host, one in shares.items():
        assert {**one, "shared": False} == WITHOUT[1][host]  # what another may use is kept
    assert asked("settled", nodes) is False
    found = asked("archives", nodes, __frameworks_distribute=True)
    assert set(found) == {"main"} and found["main"]["downloaders"] in ([EVIL], ["gpu-1"], [])
