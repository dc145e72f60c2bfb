# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon tuned: whether it is in charge of the node, its profile, and whether it finds its profile applied."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

PROGRAM = "/usr/sbin/tuned-adm"
WANTED = "/etc/systemd/system/multi-user.target.wants/tuned.service"
STATE = "/etc/tuned"
# What ours may begin with.
BASES = ("accelerator-performance", "throughput-performance")
# From release 2.23 on, profiles have a directory of their own below both.
NEW_PLACES = ("/usr/lib/tuned/profiles", "/etc/tuned/profiles")
OLD_PLACES = ("/usr/lib/tuned", "/etc/tuned")
PROFILE = "allreduce"


def read(tree, run=None):
    """Return {in_charge, profile, mode, directory, bases, verified}; verified is None where tuned was not asked.

    in_charge: it is installed and starts at boot; profile: of the next boot, several with spaces; mode: manual or auto.
    """
    in_charge = tree.exists(PROGRAM) and tree.exists(WANTED)
    system, own = NEW_PLACES if tree.is_directory(NEW_PLACES[0]) else OLD_PLACES
    bases = [name for name in BASES if tree.exists("%s/%s/tuned.conf" % (system, name))]
    return {
        "in_charge": in_charge,
        "profile": (tree.text(STATE + "/active_profile") or "").strip(),
        "mode": (tree.text(STATE + "/profile_mode") or "").strip(),
        "directory": "%s/%s" % (own, PROFILE),
        "bases": bases,
        # What the kernel or the machine does not have is not a failure (--ignore-missing).
        "verified": run(["tuned-adm", "verify", "--ignore-missing"]) is not None if in_charge and run else None,
    }


def command(profile, mode="manual"):
    """Return the arguments that make tuned use profiles, choose one itself, or use none."""
    if not profile:
        return ["tuned-adm", "off"]
    return ["tuned-adm", "auto_profile"] if mode == "auto" else ["tuned-adm", "profile"] + profile.split()
