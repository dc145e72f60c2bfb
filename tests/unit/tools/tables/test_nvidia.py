# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of data/stack/nvidia_wheels.yml: the releases that are for the same machines and require the same stand together."""

from __future__ import annotations

from tools.tables.document import styled
from tools.tables.nvidia import Found, missing, update

DAY = "2026-12-03"


def found(release, platform="manylinux_2_27", arches=("x86_64", "aarch64"), requires=("nvidia-cublas-cu12",)):
    wheels = tuple(f"nvidia_cudnn_cu12-{release}-py3-none-{platform}_{arch}.whl" for arch in arches)
    windows = f"nvidia_cudnn_cu12-{release}-py3-none-win_amd64.whl"
    return Found((*wheels, windows) if arches else (windows,), "2026-11-30", ">=3", requires)


def updated(rows, **releases):
    told = {name.replace("_", "."): one for name, one in releases.items()}
    return update(rows, {"nvidia-cudnn-cu12": list(told)}, lambda package, release: told[release], DAY)


def of(rows):
    return [list(row["releases"]) for row in rows]


def test_releases_alike_share_a_row_in_their_order():
    rows = []
    said = updated(rows, **{"9_10_0": found("9.10.0"), "9_9_0": found("9.9.0"), "9_11_0": found("9.11.0", requires=())})
    assert of(rows) == [["9.9.0", "9.10.0"], ["9.11.0"]]
    assert rows[0] == {
        "package": "nvidia-cudnn-cu12", "python": ">=3", "platforms": {"x86_64": "manylinux_2_27", "aarch64": "manylinux_2_27"},
        "glibc": {"x86_64": "2.27", "aarch64": "2.27"}, "requires": ["nvidia-cublas-cu12"],
        "releases": {"9.9.0": "2026-11-30", "9.10.0": "2026-11-30"}, "read": DAY, "sources": ["Z1"],
    }  # fmt: skip
    assert said[0] == "nvidia-cudnn-cu12 9.9.0: new"


def test_a_tag_that_tells_no_glibc_leaves_it_out():
    rows = []
    updated(rows, **{"8_5_0": found("8.5.0", platform="manylinux1", arches=("x86_64",))})
    assert (rows[0]["platforms"], rows[0]["glibc"]) == ({"x86_64": "manylinux1"}, {})


def test_what_is_there_stays_as_it_was_written():
    rows = []
    updated(rows, **{"9_9_0": found("9.9.0")})
    rows[0]["note"] = "by hand"
    rows[0]["releases"] = styled({"9.9.0": "2020-01-01"})
    said = updated(rows, **{"9_9_0": found("9.9.0"), "9_10_0": found("9.10.0")})
    assert said == ["nvidia-cudnn-cu12 9.10.0: new"]
    assert (rows[0]["releases"]["9.9.0"], rows[0]["note"]) == ("2020-01-01", "by hand")
    assert missing(rows, {"nvidia-cudnn-cu12": ["9.9.0", "9.10.0"]}) == []


def test_a_release_without_wheels_for_linux_has_no_row():
    rows = []
    assert updated(rows, **{"9_9_0": found("9.9.0", arches=())}) == [
        "nvidia-cudnn-cu12 9.9.0: no row, as it has no wheels for Linux"
    ]
    assert rows == []
