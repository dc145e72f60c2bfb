# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hold over packages of apt: what is installed, dpkg's selections, and the files that keep versions where they are."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

HEADER = "# Written by module allreduce.gpu.package_hold; changes made here are lost.\n"
STATUS = "/var/lib/dpkg/status"
# Kernels, their headers, and the meta packages that bring the next ones.
KERNEL = ["linux-image-*", "linux-headers-*", "linux-modules-*", "linux-generic*", "linux-virtual*"]


def installed(text):
    """Return [{name, version, selection, held}] of dpkg's status file.

    ``selection`` is the name that dpkg understands.
    """
    packages = []
    for stanza in re.split(r"\n\n+", text):
        fields = dict(re.findall(r"(?m)^(Package|Version|Status|Architecture|Multi-Arch): (.*)$", stanza))
        want, dummy_flag, state = (fields.get("Status", "").split() + ["", "", ""])[:3]
        if state in ("", "not-installed", "config-files"):
            continue
        name = fields["Package"]
        # Of a library there may be one for each architecture.
        selection = "%s:%s" % (name, fields["Architecture"]) if fields.get("Multi-Arch") == "same" else name
        packages.append(
            {"name": name, "version": fields.get("Version"), "selection": selection, "held": want == "hold"}
        )
    return packages


def preferences_path(name):
    """Return the path of the pins; they also tell later which packages the hold took."""
    return "/etc/apt/preferences.d/allreduce-" + name


def files(hold, packages):
    """Return {path: text, or None where no file belongs} for the hold of these packages; all None without any."""
    patterns = hold["packages"] if packages else []
    return {
        preferences_path(hold["name"]): _preferences(packages),
        "/etc/apt/apt.conf.d/61allreduce-hold-" + hold["name"]: _blacklist(patterns, hold["excluded"]),
    }


def pinned(text):
    """Return the names of the packages that the preferences file pins."""
    return set(" ".join(re.findall(r"(?m)^Package: (.*)$", text or "")).split())


def selections(packages, names, before):
    """Return {selection: word}: hold the packages of these names, release those that only the hold before had."""
    changes = {}
    for package in packages:
        if package["name"] in names and not package["held"]:
            changes[package["selection"]] = "hold"
        elif package["name"] in before - names and package["held"]:
            changes[package["selection"]] = "install"
    return changes


def _preferences(packages):
    versions = {}
    for package in packages:
        versions.setdefault(package["version"], set()).add(package["name"])
    stanza = "\nPackage: %s\nPin: version %s\nPin-Priority: 1001\n"
    stanzas = [stanza % (" ".join(sorted(versions[version])), version) for version in sorted(versions)]
    return HEADER + "".join(stanzas) if stanzas else None


def _blacklist(patterns, excluded):
    """unattended-upgrades matches Python expressions at the beginning of a name."""
    spared = "(?!(%s)$)" % "|".join(expression(pattern) for pattern in excluded) if excluded else ""
    lines = ['  "^%s%s$";\n' % (spared, expression(pattern)) for pattern in patterns]
    return HEADER + "Unattended-Upgrade::Package-Blacklist {\n" + "".join(lines) + "};\n" if lines else None


def expression(pattern):
    """Translate a shell pattern of * and ? to a regular expression of Python and Perl, without backslash or anchors."""
    special = {"*": ".*", "?": "."}
    return "".join(special.get(char) or (char if re.match(r"[\w-]", char) else "[%s]" % char) for char in pattern)
