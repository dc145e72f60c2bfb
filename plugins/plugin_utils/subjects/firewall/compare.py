# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the rules that a node runs with what was decided for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....module_utils.host import nft
from ...documents.comparison import Comparison, Remedy, Status, compared, undecided
from ...documents.firewall import FirewallNode
from .decide import Rules
from .nftables import table
from .plan import parse_reserved, sysctl
from .request import Request, distinct

COMPONENT = "firewall"
_digest: Callable[[str], str | None] = nft.digest_of  # Python 3.6 on the nodes: it has no types of its own


def compare_rules(rules: Rules, wanted: Request, node: FirewallNode) -> list[Comparison]:
    """Return a comparison of rules, of peers and of what strict mode narrows."""
    return [_rules(rules, node), _peers(rules, node), *_doors(rules, node), *_kernel(wanted, node)]


def compare_unmeasured(reason: str = "") -> list[Comparison]:
    """Return the one comparison of a node whose firewall was not looked at, or, for this reason, cannot be as asked for."""
    return [undecided(COMPONENT, "firewall", "as declared", reason, "rules")]


def compare_absent(recorded: bool) -> list[Comparison]:
    """Return the differences of a node that is to have no rules of ours: that it has."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, "firewall", "as it was", "changed", Status.UNWANTED, Remedy.APPLY, "rules")]


def _rules(rules: Rules, node: FirewallNode) -> Comparison:
    running = node.nft.digest
    loaded = node.firewalld.policy if rules.owner == "firewalld" else running == _digest(table(rules))
    present = node.nft.digest is not None or node.firewalld.policy
    state = "as declared" if loaded else "others" if present else None
    return compared(COMPONENT, f"rules of {rules.owner}", "as declared", state, loaded, Remedy.APPLY, "rules")


def _peers(rules: Rules, node: FirewallNode) -> Comparison:
    """Name who is missing or should have left, not a thousand who are there."""
    held = node.firewalld.peers if rules.owner == "firewalld" else node.nft.peers
    if held is None:
        return compared(COMPONENT, "peers", f"{len(rules.peers)} peers", None, False, Remedy.APPLY, "peers")
    found = set(distinct(held)) if not any("-" in one for one in held) else set(held)
    missing, more = sorted(set(rules.peers) - found), sorted(found - set(rules.peers))
    parts = [f"{len(found)} peers"]
    parts += [f"without {', '.join(missing)}"] if missing else []
    parts += [f"with {', '.join(more)}, which left"] if more else []
    agrees = not missing and not more
    return compared(COMPONENT, "peers", f"{len(rules.peers)} peers", ", ".join(parts), agrees, Remedy.APPLY, "peers")


def _doors(rules: Rules, node: FirewallNode) -> Iterator[Comparison]:
    """Yield the chains of others that would refuse what our table lets in."""
    if rules.owner == "ufw":
        yield _door("ufw", node.ufw.door)
    if rules.owner == "nftables":
        yield from (_door(one.label, one.door) for one in node.nft.closed if one.tool == "nft")


def _door(subject: str, there: bool) -> Comparison:
    state = "open" if there else "closed"
    return compared(COMPONENT, f"{subject} for peers", "open", state, there, Remedy.APPLY, "rules")


def _kernel(wanted: Request, node: FirewallNode) -> Iterator[Comparison]:
    """Yield the differences of the settings that strict mode narrows."""
    for key, value in sysctl(wanted, node.kernel).items():
        if key.endswith("ip_local_port_range"):
            running, agrees = node.kernel.port_range, node.kernel.port_range == value
        else:
            running, agrees = node.kernel.reserved, parse_reserved(node.kernel.reserved) == parse_reserved(value)
        yield compared(COMPONENT, key, value, running, agrees, Remedy.APPLY, "kernel")
