# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that fapolicyd, where a node has it, lets the environments' programs run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.observed import Fapolicyd
from ..documents.parsing import parse
from .check import Check, check, compared

NAME, CATEGORY, EXPECTED = "fapolicyd_rules", "health", "loaded, where the daemon enforces"
FILE = "/etc/fapolicyd/rules.d/38-allreduce.rules"
RULES = {"equal": "in place", "different": "with other content", "absent": "missing"}
FOLLOWS = "fapolicyd no longer allows the programs of /opt/allreduce when its rules are compiled again"
DENIES = "fapolicyd keeps all but root from the programs and libraries of /opt/allreduce"
REPAIR = {
    "equal": "load it with 'systemctl restart fapolicyd'",
    "different": "run playbook site.yml",
    "absent": "run playbook site.yml with base_fapolicyd_state: present",
}
UNREADABLE = (f"only root can read {FILE.rpartition('/rules.d')[0]} on this node", "run verify as root")
PERMISSIVE = "fapolicyd is permissive: it logs what it would deny, and denies nothing"
STOPPED = "fapolicyd is installed but does not run"
OTHERS = (
    "the site's own rules or trust name /opt/allreduce/",
    "run 'fapolicyd --debug-deny', which shows whether they are enough",
)


def checks(state: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the check; none for a node without fapolicyd. Raise DocumentError for a fact gpu_node_state of another shape."""
    if state.get("fapolicyd"):
        yield judge(parse(Fapolicyd, state["fapolicyd"], "gpu_node_state.fapolicyd"))


def judge(found: Fapolicyd) -> Check:
    """Judge whether our rules are in force."""
    if not found.active:
        return check(NAME, CATEGORY, EXPECTED, "not running", "skipped", STOPPED)
    if found.rules is None or found.loaded is None or found.permissive is None:
        return compared(NAME, CATEGORY, EXPECTED, None, None, *UNREADABLE)
    measured = f"file {RULES[found.rules]}, {'loaded' if found.loaded else 'not loaded'}"
    missed, fix = FOLLOWS if found.loaded else DENIES, REPAIR[found.rules]
    is_kept = found.loaded and found.rules == "equal"
    if found.permissive:
        why = (PERMISSIVE, "") if is_kept else (f"{PERMISSIVE}. Once it enforces, {missed}", fix)
        return check(NAME, CATEGORY, EXPECTED, measured, "skipped", *why)
    if found.others and not is_kept:
        return check(NAME, CATEGORY, EXPECTED, measured, "skipped", *OTHERS)
    return compared(NAME, CATEGORY, EXPECTED, measured, is_kept, missed, fix)
