# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choices of update-alternatives, from its files: dpkg's (update-alternatives(1)) and those of chkconfig (alternatives(8))."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

ADMINISTRATION = ("/var/lib/dpkg/alternatives/", "/var/lib/alternatives/")


def read_alternative(tree, name):
    """Return {manual, target} of the name; None where nothing is registered, or the files cannot be read."""
    target = tree.link("/etc/alternatives/" + name)
    modes = [(tree.text(directory + name) or "").partition("\n")[0] for directory in ADMINISTRATION]
    known = [mode for mode in modes if mode in ("auto", "manual")]
    return {"manual": known == ["manual"], "target": target} if target and known else None
