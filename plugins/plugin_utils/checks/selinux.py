# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that SELinux enforces as configured and lets training work, and list its denials since the node booted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.observed import Selinux
from ..documents.parsing import parse
from ..documents.selinux import Denial, Denials, Probed
from ..drift.selinux import boolean_notes, boolean_problems, hindering, loads_driver, mode_problems
from ..problems.problem import Problem
from ..problems.sentence import Sentence
from .check import PLAY, Check, check, compared, joined, skipped, told

CATEGORY = "health"
NAMES = {
    "selinux_mode": "enforcing, where that is configured",
    "selinux_booleans": "none that keeps the driver or training from working",
    "selinux_denials": "none of training or of our files since the node booted",
    "selinux_labels": "keys of the training user that sshd may read",
}
ABSENT = "the node has no SELinux; Debian and Ubuntu use AppArmor, which is not judged"
CONTAINER = "a container has its host's SELinux"
DISABLED = "SELinux is disabled, as configured"
NOT_PROBED = ("the node was not probed", PLAY)
OFF = "turn it off with 'setsebool -P {subject} off'"
NO_CODE = (
    "programs get no memory that is writable and executable, into which PyTorch writes code for the processor, as in oneDNN "
    "('could not create a primitive')"
)
IS_ON = Sentence("{subject} is on")
BOOLEANS = {
    "secure_mode_insmod": Sentence("{subject} is on: no kernel module can be loaded, not even the driver's", OFF),
    "deny_execmem": Sentence("{subject} is on: " + NO_CODE, OFF),
    "allow_execmem": Sentence("{subject} is off: " + NO_CODE, "turn it on with 'setsebool -P {subject} on'"),
    "deny_ptrace": Sentence(
        "{subject} is on: no process may open another's memory or files, as debuggers and profilers do, and PyTorch to share expandable "
        "segments between processes (pidfd_getfd)",
    ),
    "secure_mode": Sentence("{subject} is on: newrole leads to no administrative domain"),
}
SENTENCES = {
    "selinux_not_enforcing": Sentence(
        "SELinux is {subject}, although /etc/selinux/config says {configured}",
        "remove enforcing=0 and selinux=0 from the kernel's command line, and run 'setenforce 1', or reboot where it is disabled",
    ),
    "selinux_pending": Sentence(
        "{subject} becomes {pending} once the value that was written to the kernel is committed"
    ),
}
UNTOLD = ("the kernel does not say whether it enforces", "run 'getenforce' on the node")
LOGS = {
    "absent": (
        "there is no /var/log/audit/audit.log, without which denials are in the kernel's log only",
        "install auditd",
    ),
    "unreadable": ("/var/log/audit/audit.log could not be read", "run verify as root"),
    "boot_unknown": ("/proc/stat does not say when the node booted", "run 'ausearch -m avc' on the node"),
}
# The type of keys in both policies (refpolicy's and Fedora's ssh.fc), and those of home directories that others mount, which have no labels of
# their own: there, a boolean decides.
KEYS = "ssh_home_t"
MOUNTED = ("nfs_t", "cifs_t", "fusefs_t")
UNREADABLE = Sentence(
    "sshd may not read {subject}, whose type is {type} instead of "
    + KEYS
    + "; Debian's policy denies that without a word in the log",
    "run 'restorecon -Rv' on it",
)
EVENTS = "see the full events with 'ausearch -m avc -ts boot'"
LABELS = "run 'restorecon -Rv' on the path, which restores the labels that the policy has for it"


def checks(stack: Mapping[str, Any], state: Mapping[str, Any], variables: Mapping, probe: Mapping) -> Iterator[Check]:
    """Yield the checks; raise DocumentError for facts of another shape.

    stack, state: facts gpu_stack and gpu_node_state; variables: the node's; probe: what module node_probe returned
    """
    selinux = parse(Selinux, state["selinux"], "gpu_node_state.selinux") if state.get("selinux") else None
    reason = CONTAINER if state.get("container") else ABSENT if selinux is None else ""
    if selinux is None or reason:
        yield skipped("selinux_mode", CATEGORY, NAMES["selinux_mode"], reason)
        return
    yield mode(selinux)
    if selinux.mode == "disabled":  # without it there are neither booleans nor denials
        return
    yield booleans(selinux, loads_driver(stack, state, variables))
    found = parse(Probed, probe, "node_probe") if probe else Probed()
    yield denials(found.selinux_denials)
    if found.selinux_labels:
        yield labels(found.selinux_labels, selinux.mode == "permissive")


def mode(selinux: Selinux) -> Check:
    """Judge the mode by the configuration; what is not configured is told."""
    name, expected, measured = "selinux_mode", NAMES["selinux_mode"], selinux.mode or "not known"
    if selinux.mode is None:
        return compared(name, CATEGORY, expected, None, None, *UNTOLD)
    problems = mode_problems(selinux)
    if problems:
        return check(name, CATEGORY, expected, measured, "failed", *told(map(sentence, problems)))
    if selinux.mode == selinux.configured == "enforcing":
        return check(name, CATEGORY, expected, measured, "passed")
    if selinux.mode == selinux.configured:
        reason = DISABLED if selinux.mode == "disabled" else "SELinux is permissive, as configured: it denies nothing"
    else:
        reason = f"the next boot makes it {selinux.configured or 'the default of the policy'} (/etc/selinux/config)"
    return check(name, CATEGORY, expected, measured, "skipped", reason)


def booleans(selinux: Selinux, is_driver_to_load: bool) -> Check:
    """Judge the booleans that break the job; others that are on are told."""
    name = "selinux_booleans"
    problems, notes = (judge(selinux, is_driver_to_load) for judge in (boolean_problems, boolean_notes))
    status = "failed" if problems else "skipped" if notes else "passed"
    found = ", ".join(f"{key} {'on' if selinux.booleans[key].active else 'off'}" for key in sorted(hindering(selinux)))
    until = "once the node enforces: " if selinux.mode == "permissive" and found else ""
    reason, fix = told(map(sentence, [*problems, *notes]))
    return check(name, CATEGORY, NAMES[name], found or "none of them", status, until + reason, fix)


def denials(found: Denials | None) -> Check:
    """Judge what was denied; what a permissive domain went on with is told."""
    name = "selinux_denials"
    if found is None or found.problem:
        why = LOGS.get(found.problem or "", ("", "")) if found else NOT_PROBED
        return compared(name, CATEGORY, NAMES[name], None, None, *why)
    enforced = [one for one in found.denials if not one.permissive]
    measured = f"{sum(one.count for one in found.denials) or 'none'} {_reach(found)}"
    shown = enforced or found.denials
    labels = [LABELS] if any(one.target.startswith("/") for one in shown) else []
    status = "failed" if enforced else "skipped" if shown else "passed"
    why = (joined(map(denial, shown)), joined([EVENTS, *labels])) if shown else ("", "")
    return check(name, CATEGORY, NAMES[name], measured, status, *why)


def labels(found: Mapping[str, str], is_permissive: bool) -> Check:
    """Judge the types of the keys, by path; what a permissive node does not deny is told."""
    name = "selinux_labels"
    wrong = {path: kind for path, kind in found.items() if kind not in (KEYS, *MOUNTED)}
    measured = ", ".join(f"{kind or 'none'} of {path}" for path, kind in (wrong or found).items())
    told_of = [UNREADABLE.filled(path, {"type": kind or "none"}) for path, kind in wrong.items()]
    status = "passed" if not wrong else "skipped" if is_permissive else "failed"
    return check(name, CATEGORY, NAMES[name], measured, status, *told(told_of))


def _reach(found: Denials) -> str:
    return (
        "since the boot"
        if found.complete
        else "in the last part of the audit log, which does not reach back to the boot"
    )


def denial(one: Denial) -> str:
    """Return a denial in words: who, what, on what."""
    times = f" ({one.count} times)" if one.count > 1 else ""
    how = "would be denied" if one.permissive else "was denied"
    return f"{one.command or 'a program'} {how} {one.operations} on {one.kind} {one.target}{times}"


def sentence(problem: Problem) -> Sentence:
    """Return the cause and the remedy of one problem."""
    if problem.code == "selinux_boolean":
        return BOOLEANS.get(problem.subject, IS_ON).filled(problem.subject, {})
    detail = {key: {True: "on", False: "off"}.get(value, value) for key, value in problem.detail.items()}
    return SENTENCES[problem.code].filled(problem.subject, detail)
