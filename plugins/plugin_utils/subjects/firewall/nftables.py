# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules as a table of nftables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ....module_utils.host.nft import COMMENT, FAMILY, MARK, TABLE
from ...cluster.networks import nft_names, nft_sets, of_version
from .decide import Rules
from .ports import words

HEADER = "# Written by role allreduce.gpu.firewall; changes made here are lost.\n"
# After connections are tracked (-200) and before filters of others (0).
PRIORITY = -145


def table(rules: Rules) -> str:
    """Return the text of the file that nft loads in one step. The number of rules does not depend on that of peers."""
    body = "\n".join(_table(rules, "{digest}"))
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return HEADER + body.replace("{digest}", digest) + "\n"


def _table(rules: Rules, digest: str) -> Iterator[str]:
    name = f"{FAMILY} {TABLE}"
    yield f"add table {name}"
    yield f"delete table {name}"
    yield f"table {name} {{"
    yield from nft_sets("peers", rules.peers)
    yield "\tchain input {"
    yield f"\t\ttype filter hook input priority {PRIORITY}; policy accept;"
    yield f'\t\tiifname "lo" accept comment "{COMMENT} {digest}"'
    yield f"\t\tiifname {{ {nft_names(rules.interfaces)} }} goto training"
    for version, family in ((4, "ip"), (6, "ip6")):
        # What arrives at another interface for an address of these is let in by the kernel, too.
        own = of_version(rules.addresses, version)
        if own:
            yield f"\t\t{family} daddr {{ {', '.join(own)} }} goto training"
    yield "\t}"
    yield "\tchain training {"
    yield from _training(rules)
    yield "\t}"
    yield "}"


def _training(rules: Rules) -> Iterator[str]:
    ports = ", ".join(words(rules.ports))
    for version, family in ((4, "ip"), (6, "ip6")):
        if ports:
            match = f"meta l4proto {{ tcp, udp }} th dport {{ {ports} }} {family} saddr @peers{version}"
            yield f"\t\t{match} meta mark set meta mark | {MARK:#x} accept"
    yield "\t\tct state established,related accept"
    closed = ", ".join(words(rules.closed))
    if closed:
        yield f"\t\ttcp dport {{ {closed} }} reject with tcp reset"
        yield f"\t\tudp dport {{ {closed} }} reject with icmpx type admin-prohibited"
