# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/faults.md and docs/reference-systems.md: nothing twice, and each of their tests exists."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from tools.docs import faults, reference_systems

CHECKOUT = Path(__file__).resolve().parents[4]
GROUPS = faults.load(CHECKOUT)
ROWS = [row for group in GROUPS for row in group["faults"]]
SYSTEMS = reference_systems.load(CHECKOUT)


@functools.cache
def functions(file: str) -> set[str]:
    """Return the names of functions in a file of the checkout, those of classes as well."""
    path = CHECKOUT / file
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else ()
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def exists(test: str) -> bool:
    file, _colons, name = test.partition("::")
    return Path(file).name.startswith("test_") and name.startswith("test_") and name in functions(file)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["fault"])
def test_a_fault_is_told_whole_and_its_test_exists(row):
    assert list(row) == ["fault", "sees", "cluster", "test"]
    assert all(isinstance(text, str) and text.strip() == text != "" and "\n" not in text for text in row.values())
    assert exists(row["test"]), row["test"]


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("tests/unit/tools/docs/test_faults.py::test_no_fault_is_twice_and_there_are_many", True),
        ("tests/scenarios/test_60_faults.py::test_lock_is_held", True),  # of a class
        ("tests/unit/tools/docs/test_faults.py::test_that_nobody_wrote", False),
        ("tests/unit/tools/docs/test_faults.py::exists", False),
        ("tests/unit/tools/docs/test_no_such_file.py::test_a", False),
        ("tests/unit/tools/docs/test_faults.py", False),
    ],
)
def test_whether_a_test_exists(test, found):
    assert exists(test) is found


def test_no_fault_is_twice_and_there_are_many():
    names = [row["fault"].casefold() for row in ROWS]
    assert sorted(set(names)) == sorted(names)
    assert len(names) >= 40


def test_the_page_has_a_line_for_each_fault():
    text = faults.faults(GROUPS)
    lines = [line for line in text.splitlines() if line.endswith("` |")]
    assert len(lines) == len(ROWS) and f"\n{len(ROWS)} faults, " in text
    for line, row in zip(lines, ROWS, strict=True):
        assert line.replace("\\|", "").count("|") == 5
        assert line.startswith(f"| {row['fault']} |") and line.endswith(f"| `{row['test']}` |")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [group["kind"] for group in GROUPS]


@pytest.mark.parametrize(
    "row", [row for one in SYSTEMS for row in one["rows"]], ids=lambda row: f"{row['state']}-{row['asks'][:60]}"
)
def test_what_a_document_asks_for_has_a_state_and_its_test_exists(row):
    assert list(row) == ["asks", "here", "state", "test"] and row["state"] in reference_systems.STATES
    assert all(isinstance(text, str) and text.strip() == text != "" and "\n" not in text for text in row.values())
    assert exists(row["test"]), row["test"]


def test_the_page_of_the_reference_systems_has_each_of_them_and_counts():
    text = reference_systems.reference_systems(SYSTEMS)
    names = {
        path.parent.name for path in CHECKOUT.glob("inventories/*/hosts.yml") if "gpu_stack_host" in path.read_text()
    }
    assert len(names) == 4 and all(f"`{name}`" in text for name in names)
    done = sum(row["state"] == "done" for one in SYSTEMS for row in one["rows"])
    assert f": {done} done, " in text and text.count("| done |") == done
