# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconcile a conda environment with its lock: read, plan, apply, and solve. Options are the module's; answers have ``findings``."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import platform as machine
import shutil
import tempfile

from ..host.download import read_proxies
from ..machine.files import FileTree
from . import conda_build, conda_lock, conda_plan, conda_prefix, conda_program

# conda's names of machines (conda, base/constants.py); others are called as the kernel calls them.
PLATFORMS = {"x86_64": "linux-64", "i686": "linux-32"}


def platform():
    """Return conda's name for this machine."""
    return PLATFORMS.get(machine.machine(), "linux-" + machine.machine())


def decide(options, run):
    """Return the decision that module conda_env returns for present and absent, before anything is changed."""
    tree, prefix = FileTree("/"), options["prefix"]
    found = conda_prefix.read_prefix(tree, prefix)
    locked, problems = None, []
    if options["state"] == "present":
        locked, problems = conda_lock.parse(options["lock"])
        problems = (
            problems[:1] or conda_lock.foreign(locked, platform()) or _refused(options, map(_channel, locked.values()))
        )
    step, impossible = (None, []) if problems else conda_plan.plan(found, locked, options["state"])
    answer = {"step": step, "state": found["state"], "findings": problems or impossible}
    if options["state"] == "absent":
        return dict(answer, diff={"before": conda_plan.shown(found), "after": ""})
    answer["program"], missing = _program(options, run)
    if step and not options["check"]:
        answer["findings"] = answer["findings"] or missing
    answer.update(
        differences=[] if problems else conda_plan.differences(found["packages"], locked),
        changed_files=found["changed_files"],
        diff={"before": conda_plan.shown(found), "after": "" if problems else conda_plan.shown_lock(locked)},
    )
    return answer


def _channel(package):
    return conda_lock.channel(package["url"])


def _refused(options, channels):
    return [] if options["allow_defaults"] else conda_lock.default_channels(channels)


def _program(options, run):
    return conda_program.find(
        options["program"], options["on_path"], lambda command: run(command, {"LC_ALL": "C.UTF-8"})
    )


def reconcile(options, answer, run):
    """Do the step that was decided; return problems."""
    place = conda_build.Place(options["prefix"])
    if answer["step"] is None:
        conda_build.clear(place)
        return []
    if answer["step"] == "remove":
        conda_build.take_away(place)
        return []
    program, proxies = answer["program"], read_proxies()

    def install(command, cache):
        return run(command, conda_program.environment(program, cache, proxies))

    packages = conda_lock.parse(options["lock"])[0]
    return conda_build.replace(FileTree("/"), place, program, packages, install, proxies)


def solve(options, run, directory):
    """Return {lock, program, findings}: what the specs need, without packages, so that the program names all addresses."""
    findings = _refused(options, options["channels"])
    program, missing = (None, []) if findings else _program(options, run)
    answer = {"program": program, "findings": findings or missing}
    if answer["findings"]:
        return answer
    cache = tempfile.mkdtemp(dir=directory)
    try:
        command = conda_program.solution(program, os.path.join(cache, "prefix"), options["channels"], options["specs"])
        code, output = run(command, conda_program.environment(program, cache, read_proxies()))
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    if code != 0:
        return dict(answer, findings=[conda_program.failure(program, code, output)])
    lock, findings = conda_program.read_solution(output, platform())
    findings = findings or _refused(options, map(_channel, conda_lock.parse(lock)[0].values()))
    return dict(answer, lock=lock, findings=findings)
