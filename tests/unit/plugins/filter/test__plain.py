# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._plain import FilterModule
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.uv_messages import explain as uv_problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.messages import explain as package_problem

ESCAPE = "\x1b]0;title\x07\x1b[2J"
ROOT = Path(__file__).resolve().parents[4]
# What a program on a node printed, or why a module failed there.
TOLD = re.compile(r"[.](?:stdout|stderr)(?:_lines)?\b|ansible_failed_result[.]msg")


def test_a_text_is_made_harmless():
    assert FilterModule().filters()["_plain"]("\x1b]0;title\x07a\x1b[31mb\r\n\x9bc") == "ab\n\N{REPLACEMENT CHARACTER}c"


@pytest.mark.parametrize("path", sorted(ROOT.glob("roles/*/tasks/*.yml")), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_node_printed_is_shown_through_the_filter(path):
    for block in re.split(r"^ *- name:", path.read_text(encoding="utf-8"), flags=re.M):
        shown = re.search(
            r"^ *(?:fail_msg|msg):(.*?)(?=^ *(?:quiet|when|that|run_once|vars|changed_when|become|register):|\Z)",
            block,
            re.M | re.S,
        )
        if shown and TOLD.search(shown[1]):
            assert re.search(r"allreduce[.]gpu[.]_(plain|uv_problem|package_problem)\b", shown[1]), shown[1]


def test_what_explains_a_failure_removes_them_as_well():
    said = f"{ESCAPE}Something that nobody knows"
    assert "\x1b" not in uv_problem(said, "Cannot")["text"] + package_problem({"msg": said})["text"]
    said = f"error: Failed to fetch {ESCAPE}x: No space left on device"
    assert uv_problem(said, "Cannot")["cause"] == "disk_full"
    assert "\x1b" not in "".join(
        map(str, [*uv_problem(said, "Cannot").values(), *package_problem({"stderr": said, "msg": said}).values()])
    )
