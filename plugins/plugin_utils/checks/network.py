# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the clock, and that nodes find and reach each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .check import PLAY, Check, compared, joined, skipped, yes_no

CATEGORY = "network"

NAMES = "run site over the whole group, or correct what names resolve to in /etc/hosts or DNS"
UNTRIED = "the other nodes were not tried"
USER = "set verify_user to a user of the node, or run site over the whole group"
NOT_FOLLOWING = ("the clock does not follow a time server", "set up a time service, such as chrony")
NOT_ASKED = ("systemd could not be asked", "run timedatectl on the node, and see what it says")
KEYS = "run site over the whole group, whose role cluster_ssh gives the nodes keys for each other"


def checks(state: Mapping, probe: Mapping) -> Iterator[Check]:
    yield clock(state, probe)
    yield names(probe.get("peers"))
    yield ssh(probe.get("peers"))


def clock(state: Mapping, probe: Mapping) -> Check:
    if state.get("container"):
        return skipped("clock_synchronised", CATEGORY, "yes", "a container has its host's clock")
    synchronised = probe.get("clock_synchronised")
    why = NOT_FOLLOWING if synchronised is False else NOT_ASKED
    return compared("clock_synchronised", CATEGORY, "yes", yes_no(synchronised), synchronised, *why)


def names(peers: Mapping[str, Mapping] | None) -> Check:
    """Check that every other node's name leads to its cluster address: otherwise torchrun hangs instead of failing."""
    return _peers("name_resolution", peers, "resolved", NAMES, lambda peer: (
        None if peer["address"] in (peer.get("resolved") or []) else
        f"resolves to {', '.join(peer['resolved'])} instead of {peer['address']}" if peer.get("resolved") else
        f"does not resolve to {peer['address']}"
    ))  # fmt: skip


def ssh(peers: Mapping[str, Mapping] | None) -> Check:
    """Check that the training user reaches every other node without a password or a question."""
    return _peers("ssh_to_peers", peers, "ssh", KEYS, lambda peer: peer.get("ssh"))


def _peers(name: str, peers: Mapping[str, Mapping] | None, key: str, remedy: str, problem) -> Check:
    if peers is None:
        return compared(name, CATEGORY, "every other node", None, None, UNTRIED, PLAY)
    expected = f"{len(peers)} of {len(peers)} nodes"
    if not peers:
        return skipped(name, CATEGORY, "every other node", "the cluster has one node")
    untried = [peer for peer in peers.values() if key not in peer]
    if untried:
        why = (untried[0]["reason"], USER) if untried[0].get("reason") else (UNTRIED, PLAY)
        return compared(name, CATEGORY, expected, None, None, *why)
    wrong = [f"{peer} {text}" for peer, text in ((peer, problem(peers[peer])) for peer in sorted(peers)) if text]
    measured = f"{len(peers) - len(wrong)} of {len(peers)} nodes"
    return compared(name, CATEGORY, expected, measured, not wrong, joined(wrong), remedy)
