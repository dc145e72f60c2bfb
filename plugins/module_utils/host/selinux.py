# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux of a node: mode and booleans that training depends on, as the kernel's file system has them, and labels of keys."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

MOUNTED, CONFIG = "/sys/fs/selinux", "/etc/selinux/config"
ENFORCE = MOUNTED + "/enforce"
# What each of them does, and where that is written, is in docs/selinux.md.
BOOLEANS = ("allow_execmem", "deny_execmem", "deny_ptrace", "secure_mode", "secure_mode_insmod")
# What sshd reads in the home directory of whom it is to let in.
KEYS = (".ssh", ".ssh/authorized_keys")
LABEL = "security.selinux"  # the attribute of a file: user:role:type:level
MODES = {"1": "enforcing", "0": "permissive"}


def read_selinux(tree):
    """Return {mode, configured, booleans}; None for a node that has no SELinux, as Debian and Ubuntu have none.

    ``mode``: enforcing, permissive or disabled, None where the kernel does not tell; ``configured``: what
    /etc/selinux/config has for the next boot, None where it has none of these; ``booleans``: {name: {active, pending}}
    of those that the policy has.
    """
    enforce, config = tree.exists(ENFORCE), tree.text(CONFIG)
    if not enforce and config is None:
        return None
    return {
        "mode": MODES.get(tree.text(ENFORCE)) if enforce else "disabled",
        "configured": configured(config or ""),
        "booleans": dict(_booleans(tree)),
    }


def read_labels(tree, home):
    """Return {path: type} of what sshd reads below a home directory; None for a node without SELinux.

    Left out is what is missing, and what is on a file system without labels.
    """
    if home is None or not tree.exists(ENFORCE):
        return None
    found = {}
    for path in ("%s/%s" % (home, name) for name in KEYS):
        try:
            label = os.getxattr(tree.path(path), LABEL).decode("utf-8", "replace")
        except EnvironmentError:
            continue
        found[path] = (label.rstrip("\0").split(":") + ["", "", ""])[2]
    return found


def configured(text):
    """Return the mode that a configuration sets; None without one.

    As for libselinux (selinux_getenforcemode): the first line counts that begins with the key and has a mode it knows.
    """
    match = re.search(r"(?m)^SELINUX=\s*((?i:enforcing|permissive|disabled))", text)
    return match.group(1).lower() if match else None


def _booleans(tree):
    """Yield (name, {active, pending}): the kernel writes both as digits, the pending one as not yet committed."""
    for name in BOOLEANS:
        match = re.match(r"([01]) ([01])$", tree.text("%s/booleans/%s" % (MOUNTED, name)) or "")
        if match:
            yield name, {"active": match.group(1) == "1", "pending": match.group(2) == "1"}
