# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One hold over packages, whichever package manager keeps them: read, plan, apply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import grp
import os
import pwd
import time

from ..host import config_files
from . import hold_apt as apt
from . import hold_dnf as dnf
from . import hold_record as record
from .installed import matcher, os_release, package_manager

NO_PLUGIN = (
    "dnf cannot hold packages on this host: its plugin versionlock (%s) is missing; install the package"
    " python3-dnf-plugin-versionlock" % dnf.CONFIGURATION
)


def plan(tree, run, hold):
    """Return {files, selections, held, warning} for the options of the module.

    Raise ValueError where packages cannot be held. ``files`` are pairs of a declaration as config_files knows it and
    what is there now; ``selections`` is what dpkg is told; ``held`` are the versions kept. ``run`` returns the output
    of a program, or None.
    """
    manager = package_manager(tree, os_release(tree))
    if manager is None:
        raise ValueError("Packages are held on hosts with apt or dnf; /etc/os-release names neither's family")
    recorded = _file(tree, record.path(hold["name"]), record.text(hold))
    kernel = {"apt": apt.KERNEL, "dnf": dnf.KERNEL}[manager] if hold["kernel"] else []
    hold = dict(hold, packages=hold["packages"] + kernel)
    named, spared = matcher(hold["packages"]), matcher(hold["excluded"])

    def matches(name):
        return bool(name) and named(name) and not spared(name)

    planned = {"apt": _plan_apt, "dnf": _plan_dnf}[manager](tree, run, hold, matches)
    return dict(planned, files=planned["files"] + [recorded])


def read_holds(tree, run):
    """Return {name: its declaration, and whether it is ``kept``} of the holds that are recorded."""
    return {name: dict(hold, kept=_is_kept(tree, run, name, hold)) for name, hold in record.read(tree).items()}


def _is_kept(tree, run, name, hold):
    """Return True if there would be nothing to do for it now."""
    try:
        planned = plan(tree, run, dict(hold, name=name, state="held"))
        steps = [config_files.plan(wanted, found) for wanted, found in planned["files"]]
    except (AttributeError, EnvironmentError, KeyError, TypeError, ValueError):  # what is recorded can be anything
        return False
    return not any(steps) and not planned["selections"] and not planned["warning"]


def _plan_apt(tree, _run, hold, matches):
    every = apt.installed(tree.text(apt.STATUS) or "")
    ours = [package for package in every if matches(package["name"])]
    held = ours if hold["state"] == "held" else []
    # What the hold had before, and what an administrator held by hand, is free again when it does not belong any more.
    before = apt.pinned(tree.text(apt.preferences_path(hold["name"]))) | {package["name"] for package in ours}
    texts = apt.files(hold, held)
    texts[_needrestart_path(hold)] = _needrestart(hold)
    return {
        "files": [_file(tree, path, texts[path]) for path in sorted(texts)],
        "selections": apt.selections(every, {package["name"] for package in held}, before),
        "held": {package["name"]: package["version"] for package in held},
        "warning": None,
    }


def _plan_dnf(tree, run, hold, matches):
    every = dnf.installed(run(dnf.QUERY) or "")
    held = [package for package in every if matches(package["name"])] if hold["state"] == "held" else []
    path, files = dnf.list_path(tree), []
    if path:
        raw = config_files.read(tree.path(path))["content"] or ""
        files.append(_file(tree, path, dnf.locks(raw, hold["name"], held, matches)))
    if hold["module_stream"]:
        files.append(
            _file(tree, dnf.stream_path(hold["module_stream"]), dnf.stream_text(hold["module_stream"]), _same_stream)
        )
    if tree.is_directory("/etc/needrestart"):
        files.append(_file(tree, _needrestart_path(hold), _needrestart(hold)))
    return {
        "files": files,
        "selections": {},
        "held": {package["name"]: package["version"] for package in held},
        "warning": NO_PLUGIN if held and not path else None,
    }


def _same_stream(found, wanted):
    """dnf adds the profiles it installed, and the order of its lines is its own."""

    def stream(text):
        pairs = dict(line.replace(" ", "").split("=", 1) for line in (text or "").splitlines() if "=" in line)
        return pairs.get("stream"), pairs.get("state")

    return stream(found) == stream(wanted)


def _needrestart_path(hold):
    return "/etc/needrestart/conf.d/allreduce-%s.conf" % hold["name"]


def _needrestart(hold):
    """Keeps services running when a library below them was upgraded; also while packages are released."""
    lines = ["$nrconf{override_rc}{qr(^%s$)} = 0;\n" % apt.expression(service) for service in hold["services"]]
    return apt.HEADER + "".join(lines) + "1;\n" if lines else None


def _file(tree, path, text, same=None):
    """(declaration, what is there). A file keeps the owner that runs this; its text stays where ``same`` says so."""
    place = tree.path(path)
    found = config_files.read(place)
    if same and same(found["content"], text):
        text = found["content"]
    owner, group = pwd.getpwuid(os.geteuid())[0], grp.getgrgid(os.getegid())[0]
    state = "absent" if text is None else "file"
    return {"path": place, "state": state, "content": text, "mode": "0644", "owner": owner, "group": group}, found


def apply(plan, files, write, dpkg, seconds):
    """Take the steps of ``files`` and tell dpkg; ``write(path, content)`` puts a whole file in place. ValueError."""
    if plan["warning"]:
        raise ValueError(plan["warning"])
    chosen = plan["selections"]
    # The pins tell which packages the hold took: what is released is so before they change, or no later run would release it.
    _select(dpkg, {name: word for name, word in chosen.items() if word == "install"}, seconds)
    for wanted, _found, steps in files:
        config_files.apply(wanted, steps, write)
    _select(dpkg, {name: word for name, word in chosen.items() if word != "install"}, seconds)


def _select(dpkg, selections, seconds):
    if selections:
        select(dpkg, selections, seconds)


def select(run, selections, seconds, wait=2):
    """Tell dpkg, and wait while another package manager works. ``run`` takes dpkg's input: (rc, message). ValueError."""
    lines = "".join("%s %s\n" % pair for pair in sorted(selections.items()))
    until = time.monotonic() + seconds
    rc, message = run(lines)
    # Its exit code is the same for a lock that it cannot make.
    while rc != 0 and "locked by another process" in message and time.monotonic() < until:
        time.sleep(wait)
        rc, message = run(lines)
    if rc != 0:
        raise ValueError("dpkg does not accept the selections: %s" % message.strip())


def diff(files, selections):
    """Return the difference that Ansible shows with ``--diff``."""
    shown = [config_files.diff(wanted, found, steps) for wanted, found, steps in files if steps]
    if selections:
        words = {"hold": "install", "install": "hold"}
        lines = [(name, words[word], word) for name, word in sorted(selections.items())]
        header = {"before_header": "dpkg selections", "after_header": "dpkg selections"}
        before = "".join("%s %s\n" % (name, old) for name, old, _new in lines)
        after = "".join("%s %s\n" % (name, new) for name, _old, new in lines)
        shown.append(dict(header, before=before, after=after))
    return shown
