# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of data/stack/cupy.yml: one for the releases of a series whose wheels are for the same Pythons."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.cupy import numpy_floor, packages

from tools.tables.cupy import update
from tools.tables.document import styled

OLD, NEW = ["3.9", "3.10"], ["3.9", "3.10", "3.11"]


@pytest.fixture
def rows():
    row = {
        "series": 13,
        "python": NEW,
        "wheels": {"cupy-cuda12x": ["13.0.0", "13.1.0"]},
        "min_cc": "3.5",
        "note": "by hand",
    }
    return [styled(row)]


def wheels(rows):
    return [(row["python"], {name: list(found) for name, found in row["wheels"].items()}) for row in rows]


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ({"cupy-cuda12x": {"13.0.0": NEW, "13.1.0": NEW}}, [(NEW, {"cupy-cuda12x": ["13.0.0", "13.1.0"]})]),
        ({"cupy-cuda12x": {"13.2.0": NEW, "12.0.0": OLD}}, [(NEW, {"cupy-cuda12x": ["13.0.0", "13.1.0", "13.2.0"]})]),
        (
            {"cupy-cuda13x": {"13.1.0": NEW}},
            [(NEW, {"cupy-cuda12x": ["13.0.0", "13.1.0"], "cupy-cuda13x": ["13.1.0"]})],
        ),
        (
            {"cupy-cuda12x": {"13.0.0": OLD, "13.1.0": NEW}},
            [(OLD, {"cupy-cuda12x": ["13.0.0"]}), (NEW, {"cupy-cuda12x": ["13.1.0"]})],
        ),
        ({"cupy-cuda12x": {"13.0.0": OLD, "13.1.0": OLD}}, [(OLD, {"cupy-cuda12x": ["13.0.0", "13.1.0"]})]),
    ],
)
def test_releases_stand_with_their_pythons(rows, published, expected):
    update(rows, published, None)
    assert wheels(rows) == expected
    assert {(row["min_cc"], row["note"]) for row in rows} == {("3.5", "by hand")}


def test_a_new_series_says_what_is_not_known(rows):
    said = update(rows, {"cupy-cuda12x": {"14.0.0": NEW}}, lambda package, release: ">=2.0")
    row = rows[-1]
    assert (row["series"], row["min_cc"], row["max_cc"], row["numpy"]) == (14, None, None, ">=2.0")
    assert "which GPUs it supports is not known" in said[0]


def test_packages_and_numpy(rows):
    assert packages(rows) == ["cupy-cuda12x"]
    assert numpy_floor(["fastrlock>=0.5", "numpy<2.6,>=1.22"]) == ">=1.22"
    assert numpy_floor(["fastrlock>=0.5"]) is None
