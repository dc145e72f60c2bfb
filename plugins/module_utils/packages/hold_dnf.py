# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hold over packages of dnf: the list of plugin versionlock, and the enabled stream of a module."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

CONFIGURATION = "/etc/dnf/plugins/versionlock.conf"
QUERY = ["rpm", "-qa", "--qf", "%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n"]
KERNEL = ["kernel", "kernel-core", "kernel-modules*", "kernel-devel*", "kernel-headers"]


def installed(text):
    """Return [{name, version}] of what ``QUERY`` prints; the version always has its epoch.

    Of kernels there are several.
    """
    pairs = [line.split(" ", 1) for line in text.splitlines() if " " in line]
    return [{"name": name, "version": version} for name, version in pairs]


def list_path(tree):
    """Return where the plugin keeps its list; None where the plugin is not installed."""
    text = tree.text(CONFIGURATION)
    found = re.search(r"(?m)^\s*locklist\s*=\s*(\S+)", text or "")
    return found.group(1) if found else "/etc/dnf/plugins/versionlock.list" if text is not None else None


def locks(text, name, packages, matches):
    """Return the list with the locks of this hold in a block of its own.

    Locks on the same packages that another tool set would widen the hold, or stay when it is released: they go.
    Exclusions of a version (``!``) stay.
    """
    begin, end = "# BEGIN allreduce hold %s\n" % name, "# END allreduce hold %s\n" % name
    # The block stays at its place: other holds have theirs before and after it.
    head, _begin, rest = text.partition(begin)
    _old, _end, tail = rest.partition(end)
    lines = sorted({"%(name)s-%(version)s.*\n" % package for package in packages})
    block = [begin] + lines + [end] if lines else []
    return "".join(_without(head, matches) + block + _without(tail, matches))


def _without(text, matches):
    """Lines that lock none of these packages, each with its end."""
    return [line + "\n" for line in text.splitlines() if not matches(locked_name(line))]


def locked_name(line):
    """Return the package name of a line such as ``nvidia-driver-3:595.71.05-1.el9.*``; empty where it locks nothing."""
    found = re.match(r"([^!#\s]\S*?)-(\d+:)?[^\s:-]+-[^\s-]+\s*$", line)
    return found.group(1) if found else ""


def stream_path(stream):
    return "/etc/dnf/modules.d/%s.module" % stream.partition(":")[0]


def stream_text(stream):
    """Return the text that dnf writes when a stream is enabled.

    ansible.builtin.dnf can only install one, with its default profile.
    """
    module, _colon, name = stream.partition(":")
    return "[%s]\nname=%s\nstream=%s\nprofiles=\nstate=enabled\n\n" % (module, module, name)
