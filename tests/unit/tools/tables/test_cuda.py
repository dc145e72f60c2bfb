# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Toolkits that the package index has and no row: told, since a person has to look up the rest."""

from __future__ import annotations

from tools.tables.cuda import missing

ROWS = [{"version": "12.8", "updates": {"12.8.0": "570.26"}}, {"version": "13.4", "updates": {"13.4.1": None}}]


def test_releases_without_a_row_are_told():
    published = ["12.6.3", "12.8.0", "12.8.2.0", "13.4.1.0", "13.4.3", "13.5.0"]
    assert missing(ROWS, ["13.4.3"], published) == ["12.8.2", "13.5.0"]


def test_nothing_is_told_where_all_have_one():
    assert missing(ROWS, [], ["12.8.0", "13.4.1.0"]) == []
