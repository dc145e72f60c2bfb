# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import collection


def test_a_checkout_has_the_version_of_galaxy_yml():
    said = yaml.safe_load((collection.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert collection.version() == said


def test_an_installed_collection_has_the_version_of_its_manifest(tmp_path):
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "1.2.3"}}))
    assert collection.version(tmp_path) == "1.2.3"


def test_where_nothing_says_it_there_is_none(tmp_path):
    assert collection.version(tmp_path) == ""
    (tmp_path / "MANIFEST.json").write_text("[]")
    (tmp_path / "galaxy.yml").write_text("name: gpu\n")
    assert collection.version(tmp_path) == ""
