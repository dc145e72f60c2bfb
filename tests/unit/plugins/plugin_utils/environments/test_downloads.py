# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""uv takes a build whose list has no checksum for it unchecked: such builds are named."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.downloads import unchecked_builds

BUILD = {"name": "cpython", "major": 3, "minor": 10, "patch": 13, "url": "https://mirror.example/x.tar.gz"}


@pytest.mark.parametrize(
    ("change", "unchecked"),
    [
        ({"sha256": "a" * 64}, []),
        ({"sha256": "A1" * 32}, []),
        ({}, ["build"]),
        ({"sha256": None}, ["build"]),
        ({"sha256": ""}, ["build"]),
        ({"sha256": "a" * 63}, ["build"]),
        ({"sha256": "sha256:" + "a" * 64}, ["build"]),
        ({"sha256": None, "minor": 1}, []),
        ({"sha256": None, "minor": 11}, []),
    ],
)
def test_builds_of_the_planned_python_without_a_checksum(change, unchecked):
    assert unchecked_builds(json.dumps({"build": {**BUILD, **change}}), "3.10") == unchecked


@pytest.mark.parametrize("text", ["", "<html>", "[]", '["3.10"]', '{"build": "3.10"}', "null"])
def test_what_is_no_list_is_left_to_uv(text):
    assert unchecked_builds(text, "3.10") == []
