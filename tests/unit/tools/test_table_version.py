# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of the tables moves with their content."""

import datetime
import shutil

import pytest
import yaml

from tools.table_version import TABLES, digest, recorded, stamp

LATER = datetime.date(2027, 1, 31)


@pytest.fixture
def tables(tmp_path):
    """A copy of the tables, dated as they are."""
    copy = tmp_path / "stack"
    shutil.copytree(TABLES, copy)
    stamp(copy, datetime.date(2027, 1, 1))
    return copy


def edit(tables, old, new):
    path = tables / "torch.yml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_change_of_the_tables_comes_with_a_new_version():
    known = recorded()
    assert known["content"] == digest(), (
        f"the tables differ from those of version {known['table_version']}; run: python -m tools.table_version, then python -m tools.docs"
    )


def test_unchanged_tables_keep_their_version(tables):
    before = (tables / "version.yml").read_text(encoding="utf-8")
    edit(tables, "rows:", "# a remark\nrows:")
    assert not stamp(tables, LATER)
    assert (tables / "version.yml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("subject", sorted(path.stem for path in TABLES.glob("*.yml") if path.stem != "version"))
def test_a_change_of_any_table_is_dated(tables, subject):
    with (tables / f"{subject}.yml").open("a", encoding="utf-8") as stream:
        stream.write("another: 1\n")
    assert stamp(tables, LATER)
    assert recorded(tables) == {"table_version": "2027.01.31", "content": digest(tables)}


def test_the_order_of_rows_counts(tables):
    path = tables / "boards.yml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["rows"].reverse()
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert stamp(tables, LATER)
