# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of data/stack/jax.yml, one for each release that the index has."""

from __future__ import annotations

from tests.unit.plugins.plugin_utils.releases.test_jax import found
from tools.tables.jax import update


def test_releases_without_a_row_get_one_in_the_order_of_versions():
    rows = [{"version": "0.9.0"}]
    said = update(rows, ["0.4.29", "0.9.0", "0.10.2"], lambda version: found(), "2026-11-23")
    assert said == ["0.10.2: new"]
    assert [row["version"] for row in rows] == ["0.9.0", "0.10.2"]
    assert update(rows, ["0.10.3"], lambda version: found(plugins={}), "2026-11-23")[0].startswith("0.10.3: no row")
