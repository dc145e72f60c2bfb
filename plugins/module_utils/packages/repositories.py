# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories that dnf knows, from their files."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

DIRECTORY = "/etc/yum.repos.d/"
SOURCES = ("metalink", "mirrorlist", "baseurl")  # a list of mirrors stands in for a base URL
DISABLED = ("0", "no", "false", "off")
# Of those that are disabled, a subscription lists hundreds: only the distribution's own and EPEL may be of use.
USEFUL = re.compile(r"(?i)baseos|appstream|extras|powertools|crb|codeready|epel")


def parse_repositories(text):
    """Return [(id, {option: value})] of a .repo file.

    The last value of an option counts, and lines that continue one are left out.
    """
    found = []
    for section in re.split(r"\n\s*(?=\[)", "\n" + text):
        head = re.match(r"\[([^\]\n]+)\]", section)
        if head:
            found.append((head.group(1), dict(re.findall(r"(?m)^(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", section))))
    return found


def read_dnf_repositories(tree):
    """Return [{id, path, enabled, source, key}] in the order of the files: what is enabled, or may be of use.

    Repositories of debug information and of sources are left out.
    """
    entries = []
    for name in tree.names(DIRECTORY):
        text = (tree.text(DIRECTORY + name) or "") if name.endswith(".repo") else ""
        for identity, options in parse_repositories(text):
            enabled = options.get("enabled", "1").lower() not in DISABLED
            if not re.search(r"debug|source", identity) and (enabled or USEFUL.search(identity)):
                entries.append(
                    {
                        "id": identity,
                        "path": DIRECTORY + name,
                        "enabled": enabled,
                        "source": next((options[key] for key in SOURCES if options.get(key)), None),
                        "key": options.get("gpgkey") or None,
                    }
                )
    return entries
