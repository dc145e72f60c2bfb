# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subjects of mutation tests: code, and the tests that have to notice a change in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
UTILS, TESTS = "plugins/plugin_utils", "tests/unit/plugins/plugin_utils"


@dataclass(frozen=True)
class Subject:
    """code and tests: folders; only, by: the files of them that count, all without; also: tests elsewhere.

    ignored: tests too slow to repeat for every mutant.
    """

    code: str
    tests: str
    only: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


SUBJECTS = {
    "topology": Subject(f"{UTILS}/topology", f"{TESTS}/topology"),
    "drift": Subject(f"{UTILS}/drift", f"{TESTS}/drift", ignored=("test_properties.py",)),
    "stack": Subject(
        f"{UTILS}/stack",
        f"{TESTS}/stack",
        only=("blame.py", "clauses.py", "search.py", "versions.py"),
        # The others resolve whole requests: each reaches nearly every function, and says nothing of one.
        by=("test_blame.py", "test_clauses.py", "test_search.py", "test_versions.py"),
    ),
    "health": Subject(
        "plugins/module_utils/health",
        "tests/unit/plugins/module_utils/health",
        only=("ata.py", "findings.py", "gpu_history.py", "kernel_log.py", "log.py")
        + ("metrics.py", "nic_history.py", "nvme.py", "ports.py", "xid_table.py"),
        # What judges by the tests of its own. The others read machines, run in a child, or are tables that are made on import, where
        # mutmut changes nothing; their tests examine whole simulated machines.
        by=("test_ata.py", "test_findings.py", "test_gpu_history.py", "test_kernel_log.py", "test_log.py")
        + ("test_metrics.py", "test_nic_history.py", "test_nvme.py", "test_ports.py"),
    ),
}
# A settings subject is a folder, and its tests are in the folder of the same name; one file tests what all say of nodes not measured.
SUBJECTS |= {
    place.parent.name: Subject(
        f"{UTILS}/subjects/{place.parent.name}",
        f"{TESTS}/subjects/{place.parent.name}",
        also=(f"{TESTS}/drift/test_unmeasured.py",),
    )
    for place in sorted((CHECKOUT / UTILS / "subjects").glob("*/answer.py"))
    if place.parent.name not in SUBJECTS  # health is the program
}
