# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the types of rows say is what the tables hold, and what their schema promises."""

from __future__ import annotations

import copy
import json
import types
import typing
from collections.abc import Mapping

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.subjects import Subjects
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import DIRECTORY, Subject, Tables, load
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import FROZEN
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES as SMALL

TABLES = load()
SCHEMA = json.loads((DIRECTORY / "schema.json").read_text(encoding="utf-8"))["$defs"]
# In no table: merged rows have it.
MADE = {"ambiguous", "chip", "vgpu"}
OPTIONAL = {"NotRequired": typing.NotRequired}  # the files of the resolver name it for type checkers only


def hints(kind):
    return typing.get_type_hints(kind, localns=OPTIONAL, include_extras=True)


OWNED = {table.name: table for component in COMPONENTS for table in component.tables}


def row_types():
    """Subject -> type of its rows, from the components and from the overloads of Tables.rows."""
    found = [typing.get_type_hints(one) for one in typing.get_overloads(Tables.rows)]
    shared = [one for one in found if typing.get_origin(one["subject"]) is not Subject]
    return {name: table.row for name, table in OWNED.items()} | {
        typing.get_args(one["subject"])[0]: typing.get_args(one["return"])[0] for one in shared
    }


ROWS = row_types()
SUBJECTS = sorted(ROWS)


def faults(value, kind, place=""):
    """Where a value is not of a type."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return []
    if origin is typing.NotRequired:
        return faults(value, parts[0], place)
    if origin is typing.Literal:
        return [] if value in parts else [f"{place}: {value!r} is not one of {parts}"]
    if origin in (typing.Union, types.UnionType):
        return min((faults(value, part, place) for part in parts), key=len)
    if typing.is_typeddict(kind) and isinstance(value, dict):
        columns = hints(kind)
        required = {name for name, hint in columns.items() if typing.get_origin(hint) is not typing.NotRequired}
        found = [f"{place}: {name} is missing" for name in required - set(value)]
        return found + [
            fault
            for name in columns
            if name in value
            for fault in faults(value[name], columns[name], f"{place}.{name}")
        ]
    if not isinstance(value, origin or kind) or (kind is int and isinstance(value, bool)):
        return [f"{place}: {value!r} is not of type {(origin or kind).__name__}"]
    if origin is list:
        return [fault for one in value for fault in faults(one, parts[0], place)]
    if origin in (dict, Mapping):
        pairs = value.items()
        return [fault for key, one in pairs for fault in faults(key, parts[0], place) + faults(one, parts[1], place)]
    return []


def test_every_file_has_a_type():
    files = {path.stem for path in DIRECTORY.glob("*.yml")}
    assert files == {*SUBJECTS, "sources", "version", "profiles"}, "each file of data/stack is a table of a component"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rows_are_what_their_type_says(subject):
    assert [fault for row in TABLES.rows(subject) for fault in faults(row, ROWS[subject], subject)] == []


@pytest.mark.parametrize("subject", sorted(FROZEN))
def test_rows_of_the_small_tables_are_what_their_type_says(subject):
    assert [fault for row in SMALL.rows(subject) for fault in faults(row, ROWS[subject], subject)] == []
    table = OWNED.get(subject)
    assert table is None or faults(SMALL.beside(table), table.beside) == []


def test_every_table_with_versions_to_choose_from_has_a_small_one():
    """A new one is copied to tests/fixtures/stack with the rows that its cases need."""
    assert {*OWNED, "cuda", "drivers"} - {"driver_packages", "kernels", "mig"} == set(FROZEN), "tests/fixtures/stack"


def test_what_stands_beside_the_rows_is_what_its_type_says():
    assert faults(TABLES.subjects, Subjects) == []
    assert [fault for table in OWNED.values() for fault in faults(TABLES.beside(table), table.beside)] == []


@pytest.mark.parametrize("subject", sorted(set(SUBJECTS) - set(SCHEMA)))
def test_rows_without_a_schema_have_the_columns_of_their_type_and_no_others(subject):
    assert {name for row in TABLES.rows(subject) for name in row} <= set(hints(ROWS[subject]))


@pytest.mark.parametrize("subject", sorted(set(SUBJECTS) & set(SCHEMA)))
def test_columns_are_required_where_the_schema_requires_them(subject):
    schema = SCHEMA[subject]
    # Rows that take every other value from another are complete once they are read.
    required = {*schema["required"], *schema.get("anyOf", [{}])[-1].get("required", ())}
    columns = {name: typing.get_origin(hint) is not typing.NotRequired for name, hint in hints(ROWS[subject]).items()}
    assert set(columns) - MADE <= set(schema["properties"])
    assert {name for name, needed in columns.items() if needed} == set(columns) & required


@pytest.mark.parametrize(
    ("subject", "change", "fault"),
    [
        ("cuda", {"min_driver": None}, "cuda.min_driver: None is not of type str"),
        ("gpus", {"kernel_modules": ["closed"]}, "gpus.kernel_modules: 'closed' is not one of"),
        ("drivers", {"branch": "580"}, "drivers.branch: '580' is not of type int"),
        ("tensorflow", {"pins": {"nccl-cu12": 2}}, "tensorflow.pins: 2 is not of type str"),
    ],
)
def test_a_row_of_another_type_is_seen(subject, change, fault):
    row = {**copy.deepcopy(TABLES.rows(subject)[-1]), **change}
    found = faults(row, ROWS[subject], subject)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_row_without_a_column_is_seen():
    row = {name: value for name, value in TABLES.rows("cuda")[-1].items() if name != "updates"}
    assert faults(row, ROWS["cuda"], "cuda") == ["cuda: updates is missing"]
