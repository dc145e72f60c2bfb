# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the kernel: those it was started with, those of the next boot, and the distribution's tool to set them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import boot, kept_files

DROP_IN = "/etc/default/grub.d/90-allreduce.cfg"
ENTRY = re.compile(r"(?m)^\s*linux(?:16|efi)?\s+\S*/vmlinuz\S*(?:[ \t]+(.*))?$")
GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby", "/usr/bin/grubby")
UPDATE_GRUB = ("/usr/sbin/update-grub", "/sbin/update-grub")
KERNEL_INSTALL = "/etc/kernel/cmdline"
DEFAULTS = "/etc/default/grub"
GRUB_ENVIRONMENT = "grubenv"
# The one line with arguments of each kind of file; of /etc/kernel/cmdline, all.
OPTIONS = re.compile(r"(?m)^options[ \t]+(?P<line>.*)$")
LINES = {
    GRUB_ENVIRONMENT: re.compile(r"(?m)^kernelopts=(?P<line>.*)$"),
    "grub": re.compile(r"(?m)^GRUB_CMDLINE_LINUX=([\"\']?)(?P<line>.*?)\1[ \t]*$"),
    "cmdline": re.compile(r"(?s)\A(?P<line>.*\S|)"),
}


def words(text):
    """Return the arguments; quotes keep spaces together."""
    return re.findall(r'(?:[^\s"]|"[^"]*")+', text or "")


def read(tree, container):
    """Return {tool, running, configured, overriding}: configured is what every entry has; None where none can be read."""
    if container:
        return {"tool": None, "running": None, "configured": None, "overriding": None}
    return {
        "tool": tool(tree),
        "running": words(tree.text("/proc/cmdline")),
        "configured": configured(tree),
        "overriding": overriding(tree),
    }


def tool(tree):
    """Return grubby, update-grub, bls (entries edited as files), or None where nothing is known to set arguments with."""
    for name, places in (("grubby", GRUBBY), ("update-grub", UPDATE_GRUB)):
        if any(tree.exists(place) for place in places):
            return name
    return "bls" if entry_paths(tree) else None


def entry_paths(tree):
    """Return entries of the Boot Loader Specification that start something with arguments."""
    paths = ["%s/%s" % (boot.ENTRIES, name) for name in tree.names(boot.ENTRIES) if name.endswith(".conf")]
    return [path for path in paths if OPTIONS.search(tree.text(path) or "")]


def places(tree, kind):
    """Return {path: text} of what the tool edits: the entries, and what those of new kernels are made of."""
    more = ["%s/%s" % (place, GRUB_ENVIRONMENT) for place in boot.PLACES] + [DEFAULTS] if kind == "grubby" else []
    paths = sorted({tree.resolve(path) for path in entry_paths(tree) + more + [KERNEL_INSTALL]})
    return {path: kept_files.read(tree, path)["content"] for path in paths if tree.exists(path)}


def line_of(path, text):
    """Return the match of the line with arguments, with a group ``line``; None where the text has none."""
    return LINES.get(path.rpartition("/")[2], OPTIONS).search(text)


def lines(tree, kind):
    """Return {path: the line with arguments} of all places that have one."""
    found = {path: line_of(path, text) for path, text in places(tree, kind).items()}
    return {path: one.group() for path, one in found.items() if one}


def had(tree, kind, argument):
    """Return paths of those of the places that have the argument."""
    found = {path: line_of(path, line) for path, line in lines(tree, kind).items()}
    return sorted(path for path, one in found.items() if one and argument in words(one.group("line")))


def configured(tree):
    """Return the arguments that all entries have, in the first one's order."""
    entries = [_expanded(tree, tree.text(path)) for path in entry_paths(tree)]
    for place in () if entries else boot.PLACES:
        config = tree.text(place + "/grub.cfg") or ""
        entries += [words(found) for found in ENTRY.findall(config)]
    if not entries:
        return None
    return [word for word in entries[0] if all(word in entry for entry in entries)]


def _expanded(tree, text):
    """Return the arguments of an entry; on Enterprise Linux 8 they are in variables of GRUB's environment."""
    variables = {}
    for place in boot.PLACES:
        variables.update(boot.environment(tree.text(tree.resolve("%s/%s" % (place, GRUB_ENVIRONMENT))) or ""))
    given = OPTIONS.search(text).group("line")
    return words(re.sub(r"\$(\w+)", lambda name: variables.get(name.group(1), ""), given))


def overriding(tree):
    """Return the path of a drop-in of GRUB that is read after ours and sets the arguments again; None where there is none."""
    directory, dummy, ours = DROP_IN.rpartition("/")
    for name in tree.names(directory):
        values = re.findall(r"(?m)^\s*GRUB_CMDLINE_LINUX=(.*)$", tree.text("%s/%s" % (directory, name)) or "")
        if name > ours and name.endswith(".cfg") and any("GRUB_CMDLINE_LINUX" not in value for value in values):
            return "%s/%s" % (directory, name)
    return None


def drop_in(arguments):
    """Return the text of GRUB's drop-in, which update-grub reads as shell."""
    return 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"\n' % " ".join(arguments)


def with_arguments(path, text, add, remove):
    """Return the text of a place with arguments at the end of their line, or without them, else as it was."""
    found = line_of(path, text)
    if not found:
        return text
    line = found.group("line")
    for word in remove:
        line = re.sub(r"(?:^|(?<=\s)|\s)%s(?=\s|$)" % re.escape(word), "", line, count=1)
    line += "".join(" " + word for word in add if word not in words(line))
    return _replaced(path, text, found.span("line"), line)


def restored(path, text, had_before, removed, recorded):
    """Return the text of a place without the arguments that it did not have before.

    had_before: those of the removed ones that it had; recorded: its line before the first change, which it gets back where
    nothing else has added or removed anything.
    """
    text = with_arguments(path, text, had_before, [word for word in removed if word not in had_before])
    found, before = line_of(path, text), line_of(path, recorded or "")
    if found and before and sorted(words(found.group("line"))) == sorted(words(before.group("line"))):
        return _replaced(path, text, found.span(), before.group())
    return text


def _replaced(path, text, span, line):
    """Return the text with another line; GRUB's environment is written in place and keeps its size."""
    after = text[: span[0]] + line + text[span[1] :]
    if path.rpartition("/")[2] != GRUB_ENVIRONMENT:
        return after
    return after.rstrip("#").ljust(len(text), "#")


def grubby_command(add, remove):
    """Return the arguments of one run of grubby."""
    options = ["--args=" + " ".join(add)] if add else []
    return ["grubby", "--update-kernel=ALL"] + options + (["--remove-args=" + " ".join(remove)] if remove else [])
