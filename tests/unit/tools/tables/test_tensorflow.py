# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of data/stack/tensorflow.yml: releases of a minor, and a minor that is new."""

import datetime

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.tensorflow import new_row
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release, Wheel

from tools.tables.document import styled
from tools.tables.tensorflow import update

DAY = datetime.date(2026, 11, 23)
REQUIRES = (
    "numpy>=1.26",
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'nvidia-cuda-runtime-cu12<13.0,>=12.5.82; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
    'nvidia-cufft-cu12<12.0,>=11.2.3.61; extra == "and-cuda"',
    'nvidia-nccl-cu12<3.0,>=2.27.7; extra == "and-cuda"',
)


@pytest.fixture
def rows():
    row = {"version": "2.20", "releases": ["2.20.0"], "python": ["3.11", "3.12"], "cuda": "12.5", "note": "by hand"}
    return [styled(row)]


def release(version, requires=REQUIRES):
    return Release(version, (Wheel("3.12", "manylinux_2_27", "x86_64", DAY),), requires)


def never(version, python):
    raise AssertionError(f"{version} has a row already")


@pytest.mark.parametrize(
    ("published", "releases"),
    [
        ({"2.20.0": ["3.11", "3.12"]}, [["2.20.0"]]),
        ({"2.20.1": ["3.11", "3.12"]}, [["2.20.0", "2.20.1"]]),
        ({"2.20.1": ["3.12", "3.13"]}, [["2.20.0"], ["2.20.1"]]),
        ({"2.20.0.post1": ["3.11", "3.12"], "2.19.0": ["3.11"]}, [["2.20.0"]]),
    ],
)
def test_releases_of_a_known_minor(rows, published, releases):
    said = update(rows, published, never)
    assert [row["releases"] for row in rows] == releases
    assert {row["note"] for row in rows} == {"by hand"}
    assert len(said) == sum(map(len, releases)) - 1


def test_a_new_minor_is_written_from_its_metadata(rows):
    assert update(rows, {"2.21.0": ["3.12"]}, lambda version, python: release(version)) == ["2.21.0: new"]
    row = rows[-1]
    assert (row["cuda"], row["cudnn"], row["glibc"], row["and_cuda"]) == ("12.5", "9.3", "2.27", True)
    assert row["pins"] == {
        "cuda-runtime-cu12": ">=12.5.82,<13", "cublas-cu12": ">=12.5.3.2,<13", "cudnn-cu12": ">=9.3.0.75,<10",
        "nccl-cu12": ">=2.27.7,<3",
    }  # fmt: skip
    assert (row["sass"], row["ptx"], row["unverified"]) == (None, None, ["sass", "ptx"])


def test_nothing_is_invented(rows):
    assert new_row("2.21", release("2.21.0", ("numpy>=1.26",))) is None
    said = update(rows, {"2.21.0": ["3.12"]}, lambda version, python: release(version, ()))
    assert said == ["2.21.0: no row, as its metadata does not tell its CUDA or its glibc"]
    assert len(rows) == 1
