# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-logind: whether it removes what a user's programs share in memory when the user's last session ends."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import sysctl

DROP_IN = "/etc/systemd/logind.conf.d/90-allreduce.conf"
# Of files with one name, only that of the first directory counts, and they are read by their names: logind.conf(5).
DIRECTORIES = tuple(
    place + "/systemd/logind.conf.d" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
QUESTION = [
    "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
    "RemoveIPC",
]  # fmt: skip
# It rereads its configuration, and sessions go on.
RELOAD = ["systemctl", "kill", "--signal=HUP", "systemd-logind.service"]
WORDS = {"b true": "yes", "b false": "no"}


def read(tree, ask):
    """Return {running, ours, overriding}: what logind does, yes or no, None where it does not run or ``ask`` starts nothing.

    ours: whether the drop-in is there; overriding: {file, line, key, value} of the last line that is read after it.
    """
    return {
        "running": WORDS.get((ask(QUESTION) or "").strip()) if ask else None,
        "ours": tree.exists(DROP_IN),
        "overriding": overriding(tree),
    }


def overriding(tree):
    """Return the last line of a file behind ours that sets RemoveIPC."""
    found, ours = None, DROP_IN.rpartition("/")[2]
    for path in sysctl.chosen_files(tree, DIRECTORIES):
        for number, line in enumerate((tree.text(tree.resolve(path)) or "").splitlines(), 1):
            setting = re.match(r"\s*(RemoveIPC)\s*=\s*(.*?)\s*$", line)
            if setting and path.rpartition("/")[2] > ours:
                found = {"file": path, "line": number, "key": setting.group(1), "value": setting.group(2)}
    return found
