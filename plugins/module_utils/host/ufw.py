# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines in ufw's own files that let pass what our table marked. It has no sets, so peers stand in our table."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .nft import MARK

BEGIN, END = "# BEGIN allreduce.gpu firewall\n", "# END allreduce.gpu firewall\n"
AFTER = "# End required lines\n"
CHAINS = {"/etc/ufw/before.rules": "ufw-before-input", "/etc/ufw/before6.rules": "ufw6-before-input"}
LISTS = {"iptables": "ufw-before-input", "ip6tables": "ufw6-before-input"}
MATCH = "--mark 0x%x/0x%x -j ACCEPT" % (MARK, MARK)


def block(path):
    """Return our lines in one of the files."""
    return "%s-A %s -m mark %s\n%s" % (BEGIN, CHAINS[path], MATCH, END)


def with_block(text, path):
    """Return the text with our lines after those that have to be first; raise ValueError for a file without them."""
    text = without_block(text)
    if AFTER not in text:
        raise ValueError("%s has no line '%s'" % (path, AFTER.strip()))
    return text.replace(AFTER, AFTER + block(path), 1)


def without_block(text):
    """Return the text as it was without our lines."""
    before, begin, rest = text.partition(BEGIN)
    dummy, end, after = rest.partition(END)
    return before + after if begin and end else text


def read(tree, run):
    """Return {active, door}: active where it is enabled and its chains are loaded."""
    enabled = "ENABLED=yes" in (tree.text("/etc/ufw/ufw.conf") or "").replace('"', "").splitlines()
    lists = [run([program, "-S", chain]) for program, chain in sorted(LISTS.items())] if enabled else [None]
    return {"active": enabled and lists[1] is not None, "door": all(MATCH in (one or "") for one in lists)}
