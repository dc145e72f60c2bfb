# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/health.md explains every verdict and class of action, and shows every check, fault and Xid."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import ACTION_CLASSES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import CHECKS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import SEVERITIES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metric_table import METRICS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.xid_table import CONTEXT, XIDS

from tools.docs import health

TEXT = health.health()
FAULTS, CHECK_ROWS, XID_ROWS, METRIC_ROWS = (part.strip().splitlines()[2:] for part in TEXT.split("### ")[1:])
PAGE = (Path(__file__).resolve().parents[4] / "docs" / "health.md").read_text(encoding="utf-8")
WRITTEN = PAGE.partition("<!-- health: begin")[0]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_a_check_is_shown_with_its_faults_its_thresholds_and_its_source(check):
    (line,) = [line for line in CHECK_ROWS if line.startswith(f"| `{check.code}` ")]
    assert line.endswith(f" {check.source} |")
    assert all(f"`{name}` (" in line for name in check.options)
    for fault in check.faults:
        rows = [line for line in FAULTS if line.startswith(f"| `{check.code}` ") and fault.meaning in line]
        assert any(f"| `{fault.severity}` | {fault.action} | `{fault.action_class}` |" in line for line in rows)


def test_every_xid_is_shown():
    contexts = {row[2] for row in CONTEXT}
    numbers = [line.split(" | ")[0].removeprefix("| ") for line in XID_ROWS[2:]]
    shown = ", ".join(words for words in numbers if words not in contexts)
    assert sorted(map(int, shown.split(", "))) == sorted(XIDS)


@pytest.mark.parametrize("word", ["ok", *SEVERITIES, *ACTION_CLASSES])
def test_the_page_says_what_a_verdict_and_a_class_mean(word):
    assert WRITTEN.count(f"\n| `{word}` | ") == 1


@pytest.mark.parametrize("row", CONTEXT, ids=lambda row: row[2])
def test_what_an_xid_means_on_some_gpus_is_shown(row):
    name, _number, words, _gpus, source = row
    assert f"| {words} | `{name}` | {source} |" in XID_ROWS


def test_every_metric_is_shown_once():
    assert [line.split("`")[1] for line in METRIC_ROWS[2:]] == [metric.name for metric in METRICS]
