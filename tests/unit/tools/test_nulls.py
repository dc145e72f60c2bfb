# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""null is what nobody knows, in columns of which the resolver or this table says what then holds."""

from __future__ import annotations

from tools import nulls


def test_nulls_stand_only_where_it_is_said_what_holds_without_a_value():
    assert {cell for cell in nulls.nulls() if cell not in nulls.REASONS} == set()


def test_what_is_said_is_still_needed():
    assert set(nulls.REASONS) <= set(nulls.nulls())


def test_cells_are_counted_by_table_and_column(tmp_path):
    (tmp_path / "one.yml").write_text(
        'rows:\n  - {a: null, builds: [{b: null}, {b: 1}], c: {"1.2": null, d: null}}\n  - {a: null, c: []}\n'
    )
    (tmp_path / "two.yml").write_text("none: 0\n")
    assert nulls.nulls(tmp_path) == {("one", "a"): 2, ("one", "b"): 1, ("one", "c"): 1, ("one", "c.d"): 1}


def test_the_counts_are_printed_with_their_sum(capsys):
    nulls.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(nulls.nulls()) + 1
    assert sum(int(line.split()[0]) for line in lines[:-1]) == int(lines[-1].split()[0])
