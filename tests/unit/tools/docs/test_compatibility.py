# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/compatibility.md says what the resolver decides, and its picture fits a phone."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools.docs.compatibility import compatibility
from tools.docs.picture import picture

TABLES = load()
# Where there is one, a model that is on no board with Arm processors, for which there are fewer wheels.
MODELS = {
    row["compute_capability"]: row["model"] for row in sorted(TABLES.rows("gpus"), key=lambda row: "arch" not in row)
}


def table(title):
    """The lines of the table below a title as {column: cell}."""
    lines = compatibility(TABLES).partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    columns, _rule, *rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    return [dict(zip(columns, row, strict=True)) for row in rows]


WHEELS = [(one["PyTorch"], one["build"], one) for one in table("PyTorch on GPU generations")]


@pytest.mark.parametrize(("release", "build", "cells"), WHEELS[::5], ids=lambda value: str(value)[:6])
def test_a_wheel_runs_where_the_resolver_plans_it(release, build, cells):
    said, planned = {}, {}
    for capability, model in MODELS.items():
        if capability not in cells:
            continue
        request = {"pytorch": release, "pytorch_index": build}
        answers = [
            resolve({"os": os, "gpus": [model], "interpreter": "standalone", "request": request}, TABLES)["stack"]
            for os in ("ubuntu 20.04", "ubuntu 22.04")
        ]
        said[model], planned[model] = cells[capability] != "–", any(answers)
    assert said == planned


def test_a_generation_has_the_toolkits_and_drivers_of_its_gpus():
    rows = {one["capability"]: one for one in table("GPU generations")}
    assert rows["9.0"]["CUDA"] == "11.8 – newest"
    assert rows["7.0"]["CUDA"] == "11.0 – 12.9"
    for row in TABLES.rows("gpus"):
        last = row.get("max_driver_branch", "newest")
        assert rows[row["compute_capability"]]["driver branches"].endswith(f"– {last}"), row["model"]


def test_the_picture_is_as_wide_as_a_phone_and_nothing_leaves_it():
    image = ElementTree.fromstring(picture(TABLES))
    left, top, width, height = map(float, image.get("viewBox").split())
    assert (left, top, width) == (0, 0, 390)
    for one in image.iter():
        x, y = float(one.get("x", one.get("cx", 0))), float(one.get("y", one.get("cy", 0)))
        wide = float(one.get("width", 0))
        assert 0 <= x <= x + wide <= width or one is image
        assert 0 <= y <= height
    assert float(image.get("font-size")) >= 11


def test_the_picture_has_a_dot_for_every_build():
    releases = {one["PyTorch"]: set() for one in table("PyTorch on GPU generations")}
    for one in table("PyTorch on GPU generations"):
        releases[one["PyTorch"]].add(one["build"])
    dots = picture(TABLES).count("<circle")
    known = {row["version"].replace(".", "") for row in TABLES.rows("cuda")}
    assert dots == sum(build.removeprefix("cu") in known for builds in releases.values() for build in builds)
