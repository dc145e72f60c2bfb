# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import fields

from ansible_collections.allreduce.gpu.plugins.modules import report as documentation
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import document
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.model import FORMAT, Report


def test_the_whole_model_is_there(report):
    found = json.loads(document.render(report))

    assert next(iter(found)) == "format"
    assert found["format"] == FORMAT == 1
    assert set(found) == {field.name for field in fields(Report)}
    assert found["verdict"]["checks"] == {"failed": 1, "unknown": 1, "skipped": 2, "passed": 16}
    assert found["nodes"][1]["description"]["items"][0]["name"] == "nvidia-driver"
    assert found["scaling"][0]["sizes"][1]["nodes"] == 2


def test_every_key_is_documented():
    for field in fields(Report):
        assert f"C({field.name})" in documentation.DOCUMENTATION
