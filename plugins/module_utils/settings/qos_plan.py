# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that shape an interface, how it is shown, and whether it is so already. Pure.

An interface is {``name``, ``ifb``: the one its arriving packets go through or "", ``rate``, ``leaf``: a queueing discipline or
"", ``classes``: [{minor, rate, ceil, prio}], the last of them for all traffic without a choice, ``filters``: [words of tc]}; rates in
bit/s. What it is now, is what qos_facts.read_live() returns of it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..host.tc import MAJOR, is_default, is_ours, rate_text, restoring
from . import tuning_plan

ROOT = "1"
# tc shows a rate as text with four digits at least; the kernel keeps it in bytes per second.
TOLERANCE = 0.001
# Below, a class cannot send one jumbo frame; above, the kernel warns (sch_htb.c).
QUANTUM = (10000, 200000)
LEAST_BURST = 16000
# What is matched is the socket's place in this tree, which the kernel looks up when it loads the rule.
CGROUP = re.compile(r'socket cgroupv2 level \d+ "([^"]+)"')


def tree_lines(device, one):
    """Return lines for ``tc -batch``: root, classes and leaves of one device."""
    last = one["classes"][-1]["minor"]
    lines = ["qdisc replace dev %s root handle %s htb default %s" % (device, MAJOR, last)]
    lines.append(_class_line(device, "", {"minor": ROOT, "rate": one["rate"], "ceil": one["rate"], "prio": None}))
    for known in one["classes"]:
        lines.append(_class_line(device, ROOT, known))
        if one["leaf"]:
            leaf = (device, MAJOR, known["minor"], known["minor"], one["leaf"])
            lines.append("qdisc add dev %s parent %s%s handle a1%s: %s" % leaf)
    return lines


def _class_line(device, parent, known):
    rate, ceil = known["rate"], known["ceil"]
    words = "class add dev %s parent %s%s classid %s%s htb rate %dbit ceil %dbit burst %d cburst %d quantum %d" % (
        device, MAJOR, parent, MAJOR, known["minor"], rate, ceil, _burst(rate), _burst(ceil), _quantum(rate),
    )  # fmt: skip
    return words if known["prio"] is None else "%s prio %d" % (words, known["prio"])


def _burst(rate):
    """Return the bytes of a millisecond, which is what a timer may be late by."""
    return max(rate // 8000, LEAST_BURST)


def _quantum(rate):
    return min(max(rate // 8000, QUANTUM[0]), QUANTUM[1])


def ingress_lines(one):
    """Return lines for ``tc -batch`` that send arriving packets through classes of the interface's ifb device."""
    name, ifb = one["name"], one["ifb"]
    lines = tree_lines(ifb, one)
    lines += ["filter add dev %s parent %s %s" % (ifb, MAJOR, words) for words in one["filters"]]
    lines.append("qdisc add dev %s handle ffff: ingress" % name)
    redirect = "u32 match u32 0 0 action mirred egress redirect dev " + ifb
    return lines + ["filter add dev %s parent ffff: protocol all prio 1 %s" % (name, redirect)]


def restore_lines(name, recorded):
    """Return lines for ``tc -batch`` that put the root of an interface back. What the kernel made by itself, it makes again."""
    lines = ["qdisc del dev %s root" % name]
    if not is_default(recorded):
        lines.append("qdisc add dev %s root %s" % (name, " ".join(restoring(recorded))))
    return lines


def is_shaped(one, live):
    """Return True if the interface's own packets are in their classes."""
    return bool(live) and is_ours(live["root"]) and _same_tree(one, live)


def is_ingress_shaped(one, live, ifb):
    """Return True if arriving packets are. ifb: what that device is now, None where there is none."""
    if not one["ifb"]:
        return not live or not is_redirected(live)
    return is_shaped(one, ifb) and live["redirect"] == one["ifb"] and ifb["filters"] == len(one["filters"])


def is_redirected(live):
    """Return True if arriving packets go where we sent them."""
    return (live["redirect"] or "").startswith("ifb-")


def _same_tree(one, live):
    default = "0x" + one["classes"][-1]["minor"]
    last = str(live["root"]["options"].get("default", ""))  # iproute2 4 writes a decimal number
    if last not in (default, str(int(default, 16))) or live["leaf"] != one["leaf"]:
        return False
    wanted = [{"handle": MAJOR + ROOT, "parent": None, "prio": 0, "rate": one["rate"], "ceil": one["rate"]}]
    for known in one["classes"]:
        wanted.append(dict(known, handle=MAJOR + known["minor"], parent=MAJOR + ROOT))
    found = {known["handle"]: known for known in live["classes"]}
    return set(found) == {known["handle"] for known in wanted} and all(
        found[known["handle"]]["parent"] == known["parent"]
        and found[known["handle"]]["prio"] == known["prio"]
        and all(is_close(found[known["handle"]][key], known[key]) for key in ("rate", "ceil"))
        for known in wanted
    )


def is_close(found, wanted):
    """Return True if two rates are the same, as exactly as tc shows them."""
    return found is not None and abs(found - wanted) <= wanted * TOLERANCE + 8


def shown(one):
    """Return the class table that an interface is to have, as text."""
    text = _table(MAJOR + ROOT, one["rate"], [dict(known, handle=MAJOR + known["minor"]) for known in one["classes"]])
    leaf = "leaf %s\n" % one["leaf"] if one["leaf"] else ""
    return text + leaf + ("arriving packets: the same, through %s\n" % one["ifb"] if one["ifb"] else "")


def shown_live(live):
    """Return the present state of an interface, as text."""
    if not live or not is_ours(live["root"]):
        return shown_qdisc(live["root"] if live else None)
    tops = [known for known in live["classes"] if known["parent"] is None]
    text = _table(MAJOR + ROOT, tops[0]["rate"] if tops else 0, [one for one in live["classes"] if one["parent"]])
    leaf = "leaf %s\n" % live["leaf"] if live["leaf"] else ""
    return text + leaf + ("arriving packets: the same, through %s\n" % live["redirect"] if is_redirected(live) else "")


def shown_qdisc(qdisc):
    """Return a queueing discipline that is not ours, as text."""
    return "qdisc %s %s root\n" % ((qdisc["kind"], qdisc["handle"]) if qdisc else ("noqueue", "0:"))


def _table(root, rate, classes):
    lines = ["qdisc htb %s root" % MAJOR, "class %s rate %s" % (root, rate_text(rate))]
    for one in classes:
        values = (one["handle"], one["prio"], rate_text(one["rate"]), rate_text(one["ceil"]))
        lines.append("class %s prio %d rate %s ceil %s" % values)
    return "\n".join(lines) + "\n"


def loadable(text, exists):
    """Return the rules without those of control groups that are not there: nft would refuse all the others with them."""
    kept = []
    for line in text.splitlines():
        match = CGROUP.search(line)
        if not match or exists(match.group(1)):
            kept.append(line + "\n")
    return "".join(kept)


def diffs(steps):
    """Return the differences that Ansible shows with ``--diff``: each file, the rules and the class table of each interface by itself."""
    files = [step for step in steps if step["kind"] == "file"]
    shown_files = tuning_plan.diffs(files)
    for step in steps:
        if step["kind"] != "file":
            texts = (step["before"], step["after"])
            if step["kind"] == "table":
                texts = tuple("loaded: %s\n" % text if text else "" for text in texts)
            header = "%s %s" % (step["kind"], step["subject"])
            shown_files.append(dict(zip(("before", "after"), texts), before_header=header, after_header=header))
    return shown_files
