# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of frameworks that stand on PyTorch, one for each release that the index has."""

from __future__ import annotations

from tests.unit.plugins.plugin_utils.releases.test_extensions import PACKAGE, found
from tools.tables.extensions import update


def test_releases_without_a_row_get_one_in_the_order_of_versions():
    rows = [{"version": "0.10.0"}]
    releases = {"0.33.0": found(), "0.9.2": found(version="0.9.2"), "0.9.3": found(wheels=())}
    said = update(rows, ["0.8.5", "0.10.0", *releases], releases.__getitem__, PACKAGE, "2026-11-24")
    assert [one["version"] for one in rows] == ["0.9.2", "0.10.0", "0.33.0"]
    assert (said[0], said[2]) == ("0.9.2: new", "0.33.0: new")
    assert said[1].startswith("0.9.3: no row")
