# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of tc, and rates as tc writes them. Pure.

``tc -j class show`` prints plain text for HTB before iproute2 6.2, and JSON since; both are read here.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

QDISCS = ["tc", "-j", "qdisc", "show"]
CLASSES = ["tc", "-j", "class", "show", "dev"]
FILTERS = ["tc", "-j", "filter", "show", "dev"]
# Major number of our queueing disciplines: others begin at 1: or at 8001:.
MAJOR = "a11e:"
DEFAULT = "0:"
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PREFIXES.update({"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40})
_RATE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)((?:[kmgt]i?)?)(bit|bps)?", re.IGNORECASE)


def parse_rate(text):
    """Return bit/s of a rate in tc's units, such as 10gbit, 800mbit or 100mbps (bytes); None for anything else."""
    match = _RATE.fullmatch(str(text).strip())
    if not match or (match.group(2) and not match.group(3)):
        return None
    unit = 8 if (match.group(3) or "bit").lower() == "bps" else 1
    return int(float(match.group(1)) * _PREFIXES[match.group(2).lower()] * unit)


def rate_text(bits):
    """Return a rate in the largest unit that leaves a whole number."""
    for prefix, factor in (("t", 10**12), ("g", 10**9), ("m", 10**6), ("k", 10**3)):
        if bits and bits % factor == 0:
            return "%d%sbit" % (bits // factor, prefix)
    return "%dbit" % bits


def documents(text):
    """Return the list that ``tc -j`` printed; nothing where it did not run, or printed no JSON."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)]


def parse_qdiscs(text):
    """Return {interface: {root, children, ingress}} of ``tc -j qdisc show``.

    root and children: {kind, handle, options}; ingress: the kind of what is there for arriving packets, or None.
    """
    found = {}
    for one in documents(text):
        entry = found.setdefault(one.get("dev"), {"root": None, "children": [], "ingress": None})
        kept = {"kind": one["kind"], "handle": one.get("handle", DEFAULT), "options": one.get("options") or {}}
        if one.get("root"):
            entry["root"] = kept
        elif one["kind"] in ("ingress", "clsact"):
            entry["ingress"] = one["kind"]
        else:
            entry["children"].append(dict(kept, parent=one.get("parent")))
    return found


def parse_classes(text):
    """Return [{handle, parent, prio, rate, ceil}] of the HTB classes of an interface, rates in bit/s; parent None: the root's."""
    if (text or "").lstrip().startswith("["):
        return sorted((_class_of(one) for one in documents(text) if one.get("class") == "htb"), key=_handle)
    found = []
    for line in (text or "").splitlines():
        words = line.split()
        if words[:2] != ["class", "htb"]:
            continue
        pairs = dict(zip(words[3:], words[4:]))
        found.append({
            "handle": words[2], "parent": pairs.get("parent"), "prio": int(pairs.get("prio", 0)),
            "rate": parse_rate(pairs.get("rate")), "ceil": parse_rate(pairs.get("ceil")),
        })  # fmt: skip
    return sorted(found, key=_handle)


def _class_of(one):
    """Return a class that was printed as JSON, which has bytes per second."""
    return {
        "handle": one["handle"], "parent": one.get("parent"), "prio": int(one.get("prio", 0)),
        "rate": one["rate"] * 8, "ceil": one["ceil"] * 8,
    }  # fmt: skip


def _handle(one):
    return one["handle"]


def parse_redirect(text):
    """Return the interface that filters redirect packets to, or None. Filters come as text from iproute2 5, as JSON from 6."""
    match = re.search(r'"to_dev":\s*"([^"]+)"|to device ([^)\s]+)\)', text or "")
    return (match.group(1) or match.group(2)) if match else None


def count_filters(text):
    """Return the number of filters that choose a class of ours, in either of these forms."""
    return len(re.findall(r'flowid"?:?\s*"?' + MAJOR, text or ""))


def is_default(qdisc):
    """Return True if the kernel made it by itself, and so does again."""
    return qdisc is None or qdisc["handle"] == DEFAULT


def is_ours(qdisc):
    return qdisc is not None and qdisc["kind"] == "htb" and qdisc["handle"] == MAJOR


def is_restorable(entry):
    """Return True if the root of an interface can be made again as it is. entry: of parse_qdiscs()."""
    root = entry["root"]
    return is_default(root) or (restoring(root) is not None and all(is_default(one) for one in entry["children"]))


def restoring(qdisc):
    """Return the words after ``tc qdisc add dev X root`` that make a queueing discipline again; None where nothing can.

    What tc shows of others is rounded (tbf, fq_codel), or leaves out what is below them.
    """
    kind, options = qdisc["kind"], dict(qdisc["options"])
    words = ["handle", qdisc["handle"], kind]
    if kind in ("pfifo", "bfifo") and set(options) == {"limit"}:
        return words + ["limit", str(options["limit"])]
    return words if kind in ("mq", "pfifo_fast") else None
