# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each alert fires on its fault and says what is wrong; none does within a day of a healthy cluster, idle or at work."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.alerts import (
    RUNBOOKS,
    SEVERITIES,
    load,
    rules,
)

from tests.support.cluster_series import MINUTES, healthy
from tests.support.prometheus import promtool, test_rules

sys.path.insert(0, str(Path(__file__).parent))

from alert_cases import CASES  # noqa: E402 (beside this file)

ROOT = Path(__file__).resolve().parents[6]
ALERTS = {one.alert: one for one in load()}


def test_promtool_takes_the_rules(tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps(rules(load())), encoding="utf-8")
    status, said = promtool("check", "rules", "rules.json", cwd=tmp_path)
    assert status == 0, said
    assert f"{len(ALERTS)} rules found" in said


def test_every_alert_has_a_case():
    assert list(CASES) == list(ALERTS)


@pytest.mark.parametrize("name", CASES)
def test_it_fires_on_its_fault_and_not_before_or_after(name, tmp_path):
    case, alert = CASES[name], ALERTS[name]
    annotations = {"summary": case.summary, "runbook_url": f"{RUNBOOKS}/{name}.md"}
    expected = {"exp_labels": {**case.labels, "severity": alert.severity}, "exp_annotations": annotations}
    moments = [{"eval_time": f"{minute}m", "alertname": name} for minute in case.quiet]
    moments.append({"eval_time": f"{case.fires}m", "alertname": name, "exp_alerts": [expected]})
    series = [{"series": one, "values": values} for one, values in case.series.items()]
    tests = [{"interval": "1m", "input_series": series, "alert_rule_test": moments}]
    status, said = test_rules(tmp_path, rules([alert]), tests)
    assert status == 0, said[-3000:]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_healthy_cluster_is_quiet_for_a_day(busy, tmp_path):
    fired = {"expr": f'count_over_time(ALERTS{{alertstate="firing"}}[{MINUTES}m])', "eval_time": f"{MINUTES - 1}m"}
    seen = {"expr": 'count(count_over_time(up{job="node"}[1440m]) == 1440)', "eval_time": f"{MINUTES - 1}m",
            "exp_samples": [{"labels": "{}", "value": 2}]}  # fmt: skip
    test = {"interval": "1m", "input_series": healthy(busy), "promql_expr_test": [fired, seen]}
    status, said = test_rules(tmp_path, rules(load()), [test])
    assert status == 0, said[-3000:]


def test_the_table():
    assert len(ALERTS) == len(load())
    for one in load():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", one.alert) and one.severity in SEVERITIES, one
        assert re.fullmatch(r"\d+[smh]", one.hold) and one.source and not one.summary.endswith("."), one


def test_alerts_are_left_out_and_point_to_other_pages():
    found = rules(load(), "https://wiki.example.org/gpu/", ["GpuCooling"])
    named = {rule["alert"]: rule for group in found["groups"] for rule in group["rules"]}
    assert set(named) == set(ALERTS) - {"GpuCooling"}
    assert named["TargetDown"]["annotations"]["runbook_url"] == "https://wiki.example.org/gpu/TargetDown.md"
    assert [group["name"] for group in found["groups"]] == [
        "allreduce-health", "allreduce-gpu", "allreduce-fabric", "allreduce-node", "allreduce-monitoring",
    ]  # fmt: skip
