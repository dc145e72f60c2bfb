# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of data/tuning: whole, ordered, and in the words of the code."""

from __future__ import annotations

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.sysctl import normalise
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning_facts import SWITCHES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning import tables
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.conditions import CONDITIONS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import (
    DEFAULTS,
    LIMITS,
    Request,
    problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import (
    DIRECTORY,
    ArgumentRow,
    RefusedRow,
    SettingRow,
    load,
)

TABLES = load()
SETTINGS = {f"{row.kind}-{row.subject}": row for row in TABLES.settings}


def test_every_file_is_read():
    assert {path.stem for path in DIRECTORY.glob("*.yml")} == {"settings", "arguments", "refused"}


@pytest.mark.parametrize("row", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_is_in_the_words_of_the_code(row):
    assert row.condition in CONDITIONS
    assert row.kind in ("sysctl", "switch", "logind", "limit")
    assert row.subject in {"switch": SWITCHES, "logind": ["RemoveIPC"], "limit": LIMITS}.get(
        row.kind, [normalise(row.subject)]
    )
    assert row.value == " ".join(row.value.split())
    assert row.variable in ("", *DEFAULTS)
    assert not row.floor or row.value.isdigit()


@pytest.mark.parametrize("row", [*TABLES.settings, *TABLES.arguments, *TABLES.refused], ids=lambda row: row.reason[:40])
def test_every_row_has_a_reason_and_a_source(row):
    assert len(row.reason) > 20 and not row.reason.endswith(".")
    assert len(row.source) > 5


def test_a_subject_has_one_row():
    subjects = [(row.kind, row.subject) for row in TABLES.settings]
    assert len(set(subjects)) == len(subjects)


def test_nothing_of_the_tables_is_refused():
    wanted = Request(
        sysctl={row.subject: row.value for row in TABLES.settings if row.kind == "sysctl"},
        arguments=tuple(row.argument for row in TABLES.arguments),
    )
    assert list(problems(wanted, TABLES)) == []


@pytest.mark.parametrize("row", TABLES.refused, ids=lambda row: row.name)
def test_names_and_values_are_regular_expressions(row):
    assert re.compile(row.name) and re.compile(row.value)
    assert row.kind in ("sysctl", "argument") and not (row.kind == "argument" and row.value)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Tables that a test writes, read anew."""
    monkeypatch.setattr(tables, "DIRECTORY", tmp_path)

    def read(**rows):
        for name in ("settings", "arguments", "refused"):
            (tmp_path / f"{name}.yml").write_text("---\nrows:\n" + rows.get(name, "  []\n"), "utf-8")
        return load.__wrapped__()

    return read


SETTING = "  - {kind: sysctl, subject: a.b, value: '1', condition: always, reason: é, source: s}\n"
ARGUMENT = "  - {argument: a=b, reason: r, source: s}\n"
REFUSED = "  - {kind: sysctl, name: a.*, value: '[1-9]', reason: r, source: s}\n"


def test_rows_are_read_in_the_order_of_their_files(written):
    found = written(settings=SETTING, arguments=ARGUMENT + ARGUMENT.replace("a=b", "c"), refused=REFUSED)
    assert found.settings == (SettingRow("sysctl", "a.b", "1", "always", "é", "s"),)
    assert found.arguments == (ArgumentRow("a=b", "r", "s"), ArgumentRow("c", "r", "s"))
    assert found.refused == (RefusedRow("sysctl", "a.*", "r", "s", "[1-9]"),)


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ({"settings": SETTING + SETTING.replace("reason: é, ", "")}, r"settings\[1\]\.reason"),
        ({"arguments": ARGUMENT.replace(", source: s", "")}, r"arguments\[0\]\.source"),
        ({"refused": REFUSED.replace("'[1-9]'", "[1]")}, r"refused\[0\]\.value"),
    ],
)
def test_a_row_of_the_wrong_shape_is_refused_with_its_place(written, rows, place):
    with pytest.raises(DocumentError, match=f"^{place}"):
        written(**rows)


@pytest.mark.parametrize(
    ("row", "about", "expected"),
    [
        (RefusedRow("sysctl", "a.*", "", "", "[1-9]"), ("sysctl", "a.b", "5"), True),
        (RefusedRow("sysctl", "a.*", "", "", "[1-9]"), ("sysctl", "a.b", "0"), False),
        (RefusedRow("sysctl", "a.*", "", "", "[1-9]"), ("sysctl", "a.b", "15"), False),
        (RefusedRow("sysctl", "a.*", "", "", "[1-9]"), ("sysctl", "b.a.b", "5"), False),
        (RefusedRow("sysctl", "a.*", "", ""), ("sysctl", "a.b", "0"), True),
        (RefusedRow("argument", "a.*", "", ""), ("sysctl", "a.b", "0"), False),
        (RefusedRow("argument", "a.*", "", ""), ("argument", "a=b"), True),
    ],
)
def test_what_a_row_is_about(row, about, expected):
    assert row.matches(*about) is expected
