# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our table in the kernel's rules, and the chains of others that would refuse what it lets through.

A refusal in any chain is final, an acceptance is not. So our table marks what it lets through, and a chain that ends in a
refusal gets one rule, a door, that accepts what has the mark.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

FAMILY, TABLE = "inet", "allreduce"
# One bit: those of kube-proxy (0x4000, 0x8000), Calico (the upper half), Cilium (0x0f00) and Tailscale (0xff0000) are others.
MARK = 0x1000
COMMENT = "allreduce.gpu"
FILE = "/etc/allreduce/firewall.nft"
LIST = ["nft", "-j", "list", "ruleset"]
# These have rules of their own for what they let in.
FIREWALLD = "firewalld"


def objects(text):
    """Return [(kind, object)] of what ``nft -j`` printed; nothing where it did not run."""
    try:
        found = json.loads(text or "{}").get("nftables") or []
    except ValueError:
        return []
    return [pair for one in found for pair in one.items()]


def loaded(ruleset):
    """Return {digest, peers} of our table, None where it is not loaded. ruleset: what objects() returned."""
    ours = [(kind, one) for kind, one in ruleset if (one.get("family"), one.get("table")) == (FAMILY, TABLE)]
    if not ours:
        return {"digest": None, "peers": None}
    comments = [one.get("comment") or "" for kind, one in ours if kind == "rule"]
    digests = [text[len(COMMENT) + 1 :] for text in comments if text.startswith(COMMENT + " ")]
    peers = [element(one) for kind, found in ours if kind == "set" for one in found.get("elem") or []]
    return {"digest": digests[0] if digests else None, "peers": sorted(peers)}


def element(one):
    """Return an element of a set as text: an address, a network or a range."""
    if isinstance(one, dict) and "prefix" in one:
        return "%s/%d" % (one["prefix"]["addr"], one["prefix"]["len"])
    if isinstance(one, dict) and "range" in one:
        return "-".join(one["range"])
    if isinstance(one, dict) and "elem" in one:
        return element(one["elem"]["val"])
    return one


def closed(ruleset):
    """Return [{family, table, chain, tool, door}] of the chains of others that refuse what none of their rules lets in."""
    found = []
    for kind, chain in ruleset:
        place = (chain.get("family"), chain.get("table"))
        if kind != "chain" or chain.get("hook") != "input" or place[0] not in ("ip", "ip6", "inet"):
            continue
        rules = rules_of(ruleset, chain)
        if place == (FAMILY, TABLE) or place[1] == FIREWALLD or not (chain.get("policy") == "drop" or ends(rules)):
            continue
        found.append({
            "family": place[0], "table": place[1], "chain": chain["name"], "tool": tool(chain),
            "door": bool(doors(rules)),
        })  # fmt: skip
    return found


def tool(chain):
    """Tell who made a chain: only iptables writes that name in capitals, in a table of one family."""
    return "iptables" if chain["family"] != "inet" and chain["name"] == "INPUT" else "nft"


def rules_of(ruleset, chain):
    place = (chain["family"], chain["table"], chain["name"])
    return [one for kind, one in ruleset if kind == "rule" and (one["family"], one["table"], one["chain"]) == place]


def ends(rules):
    """Return True if the last rule refuses whatever gets there."""
    expressions = (rules[-1].get("expr") or []) if rules else []
    verdicts = [key for one in expressions for key in (one or {}) if key not in ("counter", "log", "limit")]
    return verdicts in (["drop"], ["reject"])


def doors(rules):
    """Return the handles of our rules in a chain of another tool."""
    return [one["handle"] for one in rules if one.get("comment") == COMMENT]


def door_commands(ruleset):
    """Return text for ``nft -f``: a door for each closed chain that nft has made and that has none."""
    match = "meta mark and 0x%x == 0x%x accept" % (MARK, MARK)
    return "".join(
        'insert rule %s %s %s %s comment "%s"\n' % (one["family"], one["table"], one["chain"], match, COMMENT)
        for one in closed(ruleset)
        if one["tool"] == "nft" and not one["door"]
    )


def removal(ruleset):
    """Return text for ``nft -f`` that takes our table and all doors away."""
    lines = []
    for kind, chain in ruleset:
        if kind == "chain" and (chain["family"], chain["table"]) != (FAMILY, TABLE):
            place = "%s %s %s" % (chain["family"], chain["table"], chain["name"])
            lines += ["delete rule %s handle %d\n" % (place, handle) for handle in doors(rules_of(ruleset, chain))]
    if ("inet", TABLE) in [(one.get("family"), one.get("name")) for kind, one in ruleset if kind == "table"]:
        lines.append("delete table %s %s\n" % (FAMILY, TABLE))
    return "".join(lines)


def digest_of(text):
    """Return the digest that a file of ours carries."""
    match = re.search(r'comment "%s ([0-9a-f]+)"' % re.escape(COMMENT), text or "")
    return match.group(1) if match else None
