# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of apt's package sources, and those that contradict each other."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

MAIN_LIST, DIRECTORY = "/etc/apt/sources.list", "/etc/apt/sources.list.d/"
# What roles of the collection write has this name.
OURS = DIRECTORY + "allreduce-"
# What entries of one archive must agree about, or apt reads none at all: {key of an entry: (apt's name of the option, how one-line
# entries call it, whether it is a word for yes or no)}. Of the others, entries before the first that has one may have none. Seen with apt 2.6.
AGREED = {
    "signed_by": ("Signed-By", "signed-by", False),
    "trusted": ("Trusted", "trusted", True),
    "check_valid_until": ("Check-Valid-Until", "check-valid-until", True),
    "check_date": ("Check-Date", "check-date", True),
    "valid_until_max": ("Max-ValidTime", "valid-until-max", False),
    "valid_until_min": ("Min-ValidTime", "valid-until-min", False),
    "date_max_future": ("Date-Max-Future", "date-max-future", False),
    "allow_insecure": ("ALLOW_INSECURE", "allow-insecure", True),
    "allow_weak": ("ALLOW_WEAK", "allow-weak", True),
    "allow_downgrade_to_insecure": ("ALLOW_DOWNGRADE_TO_INSECURE", "allow-downgrade-to-insecure", True),
}
LISTED = re.compile(r"[A-Za-z0-9_.:-]+$")  # apt leaves out files of other names, and hidden ones
# What apt puts in the place of $(ARCH) in an address, or in the directory of an archive without suites.
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname()[4], os.uname()[4])
YES, NO = ("yes", "true", "with", "on", "enable", "1"), ("no", "false", "without", "off", "disable", "0")


def list_entries(text):
    """Return the enabled entries {types, uri, suite, components, and those of AGREED} of a one-line-style sources.list."""
    entries = []
    for line in text.splitlines():
        found = re.match(r"\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if found:
            options = dict(re.findall(r"([\w-]+)=(\S+)", (found.group(2) or "").replace('"', "")))
            plain = {
                "types": [found.group(1)],
                "uri": found.group(3),
                "suite": found.group(4),
                "components": found.group(5).split(),
            }
            entries.append(_in_full(dict(plain, **_agreed(options))))
    return entries


def deb822_entries(text):
    """Return the same entries of a .sources file; one for each URI and suite.

    A key written into the file is one text.
    """
    entries = []
    for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        joined = re.sub(r"\n[ \t]+", " ", stanza)
        fields = {key.lower(): value.split() for key, value in re.findall(r"(?m)^([A-Za-z-]+):[ \t]*(.*)$", joined)}
        if _truth(" ".join(fields.get("enabled", []))) is False:
            continue
        plain = {"types": fields.get("types", []), "components": fields.get("components", [])}
        shared = dict(plain, **_agreed({name: " ".join(words) for name, words in fields.items()}))
        for uri in fields.get("uris", []):
            entries += [_in_full(dict(shared, uri=uri, suite=suite)) for suite in fields.get("suites", [])]
    return entries


def read_entries(tree):
    """Return [(path, entry)] of all files that apt reads, in its order."""
    found = [(MAIN_LIST, entry) for entry in list_entries(tree.text(MAIN_LIST) or "")]
    for name in tree.names(DIRECTORY):
        read = {"list": list_entries, "sources": deb822_entries}.get(name.rpartition(".")[2])
        if read and LISTED.match(name) and not name.startswith("."):
            found += [(DIRECTORY + name, entry) for entry in read(tree.text(DIRECTORY + name) or "")]
    return found


def contradictions(entries):
    """Return [{uri, suite, option, paths, ours}] where entries of one archive disagree, from what read_entries returned.

    paths: the files that have such entries; ours: those among them that a role of the collection wrote
    """
    archives = {}
    for path, entry in entries:
        archives.setdefault((entry["uri"].rstrip("/") + "/", entry["suite"]), []).append((path, entry))
    found = []
    for (uri, suite), same in sorted(archives.items()):
        paths = sorted({path for path, _entry in same})
        ours = [path for path in paths if path.startswith(OURS)]
        for key, (option, _word, is_truth) in sorted(AGREED.items(), reverse=True):
            values = [entry[key] for _path, entry in same]
            while not is_truth and values and values[0] is None:
                values.pop(0)
            if len(set(values)) > 1:
                found.append({"uri": uri, "suite": suite, "option": option, "paths": paths, "ours": ours})
                break
    return found


def _in_full(entry):
    """Return an entry with the architecture where it names apt's variable instead."""
    return dict(entry, **{key: entry[key].replace("$(ARCH)", ARCHITECTURE) for key in ("uri", "suite")})


def _agreed(options):
    """Return the values of AGREED in the options of an entry, by the names of one-line entries; None of what it does not set."""
    given = {key: (options.get(word) or None, is_truth) for key, (_option, word, is_truth) in AGREED.items()}
    found = {key: _truth(value) if is_truth else value for key, (value, is_truth) in given.items()}
    if found["signed_by"]:
        found["signed_by"] = re.sub(r"\s*,\s*|(?<=\S) (?=/)", ",", found["signed_by"])
    return found


def _truth(word):
    """Return the truth value that apt gives the word; None where it is not one of apt's."""
    if (word or "").lower() in YES:
        return True
    return False if (word or "").lower() in NO else None
