# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the kernel: those it was started with, those of the next boot, and the distribution's tool to set them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import boot

DROP_IN = "/etc/default/grub.d/90-allreduce.cfg"
ENTRY = re.compile(r"(?m)^\s*linux(?:16|efi)?\s+\S*/vmlinuz\S*(?:[ \t]+(.*))?$")
OPTIONS = re.compile(r"(?m)^options[ \t]+(.*)$")
GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby", "/usr/bin/grubby")
UPDATE_GRUB = ("/usr/sbin/update-grub", "/sbin/update-grub")
KERNEL_INSTALL = "/etc/kernel/cmdline"


def words(text):
    """The arguments; quotes keep spaces together."""
    return re.findall(r'(?:[^\s"]|"[^"]*")+', text or "")


def read(tree, container):
    """{tool, running, configured}: configured is what every entry of the boot loader has; None where none can be read."""
    if container:
        return {"tool": None, "running": None, "configured": None}
    return {"tool": tool(tree), "running": words(tree.text("/proc/cmdline")), "configured": configured(tree)}


def tool(tree):
    """grubby, update-grub, bls (entries that are edited as files), or None where nothing is known to set arguments with."""
    for name, places in (("grubby", GRUBBY), ("update-grub", UPDATE_GRUB)):
        if any(tree.exists(place) for place in places):
            return name
    return "bls" if entry_paths(tree) else None


def entry_paths(tree):
    """Entries of the Boot Loader Specification."""
    return ["%s/%s" % (boot.ENTRIES, name) for name in tree.names(boot.ENTRIES) if name.endswith(".conf")]


def texts(tree):
    """{path: text} of what is edited where there is no tool: the entries, and what those of new kernels are made of."""
    found = {path: tree.text(path) for path in entry_paths(tree) + [KERNEL_INSTALL]}
    return {path: text for path, text in found.items() if text is not None}


def had(tree, argument):
    """Paths of those of the texts that have the argument."""
    found = {path: OPTIONS.search(text) for path, text in texts(tree).items()}
    lines = {path: one.group(1) if one else tree.text(path) for path, one in found.items()}
    return sorted(path for path, line in lines.items() if argument in words(line))


def configured(tree):
    """The arguments that all entries have, in the first one's order."""
    entries = [_expanded(tree, tree.text(path)) for path in entry_paths(tree)]
    for place in () if entries else boot.PLACES:
        config = tree.text(place + "/grub.cfg") or ""
        entries += [words(found) for found in ENTRY.findall(config)]
    if not entries:
        return None
    return [word for word in entries[0] if all(word in entry for entry in entries)]


def _expanded(tree, text):
    """The arguments of an entry; on Enterprise Linux 8 they are in variables of GRUB's environment."""
    found = OPTIONS.search(text or "")
    variables = {}
    for place in boot.PLACES:
        variables.update(boot.environment(tree.text(tree.resolve(place + "/grubenv")) or ""))
    given = found.group(1) if found else ""
    return words(re.sub(r"\$(\w+)", lambda name: variables.get(name.group(1), ""), given))


def drop_in(arguments):
    """The text of GRUB's drop-in, which update-grub reads as shell."""
    return 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"\n' % " ".join(arguments)


def with_arguments(text, add, remove):
    """The text of an entry, or of /etc/kernel/cmdline, with arguments at its end, or without them, else as it was."""
    found = OPTIONS.search(text)
    start, end = found.span(1) if found else (0, len(text.rstrip("\n")))
    line = text[start:end]
    for word in remove:
        line = re.sub(r"(?:^|(?<=\s)|\s)%s(?=\s|$)" % re.escape(word), "", line, count=1)
    line += "".join(" " + word for word in add if word not in words(line))
    return text[:start] + line + text[end:]


def grubby_command(add, remove):
    """The arguments of one run of grubby."""
    options = ["--args=" + " ".join(add)] if add else []
    return ["grubby", "--update-kernel=ALL"] + options + (["--remove-args=" + " ".join(remove)] if remove else [])
