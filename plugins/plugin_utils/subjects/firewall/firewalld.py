# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules as sets and a policy of firewalld, in files of our own: zones and what they let in stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....module_utils.host.firewalld import POLICY, POLICY_FILE, SET, SET_FILE
from ...cluster.networks import of_version
from .decide import Rules
from .ports import Ranges, words

XML = '<?xml version="1.0" encoding="utf-8"?>\n'
NOTE = "Written by role allreduce.gpu.firewall; changes made here are lost."
FAMILIES = {4: ("ipv4", "inet"), 6: ("ipv6", "inet6")}
# Before zones (0). Within the policy, what is accepted goes before what is refused.
PRIORITY, ACCEPT, REFUSE = -145, -2, -1


def files(rules: Rules) -> dict[str, str]:
    """Return {path: text}. The number of rules does not depend on that of peers."""
    found = {SET_FILE % version: peer_set(rules, version) for version in FAMILIES}
    return {**found, POLICY_FILE: policy(rules)}


def peer_set(rules: Rules, version: int) -> str:
    """Return the set of the peers with addresses of IP version 4 or 6."""
    entries = "".join(f"  <entry>{one}</entry>\n" for one in of_version(rules.peers, version))
    return (
        f'{XML}<ipset type="hash:net">\n  <description>{NOTE}</description>\n'
        f'  <option name="family" value="{FAMILIES[version][1]}"/>\n{entries}</ipset>\n'
    )


def policy(rules: Rules) -> str:
    """Return the policy: whatever it says nothing of goes on to the zones."""
    lines = [
        f'{XML}<policy priority="{PRIORITY}" target="CONTINUE">',
        f"  <short>{POLICY}</short>",
        f"  <description>{NOTE}</description>",
        '  <ingress-zone name="ANY"/>',
        '  <egress-zone name="HOST"/>',
        *_rules(rules),
        "</policy>",
    ]
    return "\n".join(lines) + "\n"


def _rules(rules: Rules) -> Iterator[str]:
    for version, (family, _inet) in FAMILIES.items():
        own = of_version(rules.addresses, version)
        source = f'<source ipset="{SET % version}"/>'
        yield from _each(family, ACCEPT, own, source, rules.ports, "<accept/>")
        yield from _each(family, REFUSE, own, "", rules.closed, "<reject/>")


def _each(family: str, priority: int, own: Iterable[str], source: str, ports: Ranges, verdict: str) -> Iterator[str]:
    for address in own:
        for port in words(ports):
            for protocol in ("tcp", "udp"):
                match = f'{source}<destination address="{address}"/><port port="{port}" protocol="{protocol}"/>'
                yield f'  <rule family="{family}" priority="{priority}">{match}{verdict}</rule>'
