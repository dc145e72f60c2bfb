# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the kernel of the next boot, as GRUB decides: its configuration, its environment and its entries."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

PLACES = ("/boot/grub2", "/boot/grub")
VENDORS = "/boot/efi/EFI"
ENTRIES = "/boot/loader/entries"
KERNEL = re.compile(r"^\s*linux(?:16|efi)?\s+\S*/vmlinuz-(\S+)", re.MULTILINE)
HEAD = re.compile(r"^\s*(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\")(?:.*?\$menuentry_id_option\s+'([^']*)')?")


def version_key(version):
    """Sort key of kernel versions: numbers compare as numbers (6.1.0-9 < 6.1.0-40), and words come before them."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-zA-Z]+", version)]


def next_boot(tree, run):
    """Return the release of the kernel that the boot loader starts next; None where it cannot be told.

    ``run`` takes an argument list and returns the program's output: grubby is asked where GRUB's files do not tell.
    """
    for place in PLACES + tuple("%s/%s" % (VENDORS, name) for name in tree.names(VENDORS)):
        config = tree.text(place + "/grub.cfg") or ""
        if "set default=" in config:
            entries = _bls_entries(tree) + menu(config) if re.search(r"(?m)^\s*blscfg\b", config) else menu(config)
            chosen = default_entry(config, environment(tree.text(tree.resolve(place + "/grubenv")) or ""))
            return find(entries, chosen) or _asked(run)
    return _asked(run)


def _asked(run):
    found = re.search(r"/vmlinuz-(\S+)", run(["grubby", "--default-kernel"]) or "")
    return found.group(1) if found else None


def environment(text):
    """Return the variables of a grubenv."""
    pairs = [line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return {name: value for name, dummy, value in pairs}


def default_entry(config, variables):
    """Return the choice of ``set default`` of a grub.cfg: an entry's title, id or number, after its submenus and '>'."""
    values = re.findall(r"(?m)^\s*set default=\"([^\"]*)\"", config)
    if "${next_entry}" in values and variables.get("next_entry"):
        return variables["next_entry"]
    value = ([one for one in values if one != "${next_entry}"] or ["0"])[-1]
    return (variables.get("saved_entry") or "0") if value == "${saved_entry}" else value


def menu(config):
    """Return the entries of a grub.cfg, as {``title``, ``id``, ``kernel``, ``entries``: those of a submenu}."""
    top = _entry("", "")
    blocks = [top]
    for line in config.splitlines():
        head = HEAD.match(line)
        if head:
            entry = _entry(head.group(2) or head.group(3) or "", head.group(4) or "")
            blocks[-1]["entries"].append(entry)
            blocks.append(entry)
        elif line.rstrip().endswith("{"):
            blocks.append(_entry("", ""))  # a function
        elif line.strip() == "}":
            blocks = blocks[:-1] or [top]
        else:
            found = KERNEL.match(line)
            blocks[-1]["kernel"] = blocks[-1]["kernel"] or (found.group(1) if found else None)
    return top["entries"]


def _entry(title, name, kernel=None):
    return {"title": title, "id": name, "kernel": kernel, "entries": []}


def _bls_entries(tree):
    """Those of the Boot Loader Specification, in GRUB's order: the newest version first."""
    names = [name[: -len(".conf")] for name in tree.names(ENTRIES) if name.endswith(".conf")]
    found = []
    for name in sorted(names, key=version_key, reverse=True):
        text = tree.text("%s/%s.conf" % (ENTRIES, name)) or ""
        title, kernel = re.search(r"(?m)^title\s+(.*)$", text), KERNEL.search(text)
        found.append(_entry(title.group(1) if title else "", name, kernel.group(1) if kernel else None))
    return found


def find(entries, chosen):
    """Return the kernel of the chosen entry; of the first one, as GRUB does, where there is none of that name."""
    for part in chosen.split(">"):
        named = [one for one in entries if part in (one["title"], one["id"])]
        numbered = entries[int(part) : int(part) + 1] if part.isdigit() else []
        entry = (named or numbered or entries[:1] or [_entry("", "")])[0]
        entries = entry["entries"]
    while entries and entry["kernel"] is None:
        entry = entries[0]
        entries = entry["entries"]
    return entry["kernel"]
