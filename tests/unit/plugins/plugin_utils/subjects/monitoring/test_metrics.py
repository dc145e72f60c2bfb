# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every metric and label that a rule or a dashboard names is one that an exporter exposes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metric_table import METRICS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.alerts import load
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.counters import fields

from tests.support.prometheus import promtool

ROOT = Path(__file__).resolve().parents[6]
DASHBOARDS = sorted((ROOT / "roles" / "monitoring" / "files" / "dashboards").glob("*.json"))
# Of targets, and of Prometheus' own series.
TARGET = {"job", "node", "instance"}
OWN = {"up": TARGET, "ALERTS": {"alertname", "alertstate", "severity"}}
WORDS = {
    "and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", "inf", "nan",
}  # fmt: skip
STRINGS, LISTS = re.compile(r'"[^"]*"'), re.compile(r"\b(by|on|without|ignoring)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?=\s*(\(|\[|\)|$|[^\w\s(\[]|[\w]))")


def exposed():
    """{metric: names of its labels}."""
    lines = (Path(__file__).parent / "exposed_metrics.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    recorded = {row[1]: set((row[2:] or [""])[0].split(",")) for row in rows}
    health = {one.name: set(one.labels) for one in METRICS}
    gpu = next(set(one.labels) for one in METRICS if one.name == "DCGM_FI_DEV_GPU_TEMP")
    return {**{name: gpu for name, _kind, _meaning in fields()}, **recorded, **health, **OWN}


def named(expression):
    """[(metric, labels of its selector)], and the labels by which the expression groups and joins."""
    grouped = {
        label.strip() for _word, inner in LISTS.findall(expression) for label in inner.split(",") if label.strip()
    }
    text = LISTS.sub(" ", STRINGS.sub('""', expression))
    text = re.sub(r"\[[^\]]*\]", "", text)
    found = []
    for match in SELECTOR.finditer(text):
        name, selector = match[1], match[2] or ""
        if match[3] != "(" and name not in WORDS and "{" not in text[: match.start()].rpartition("}")[2]:
            found.append((name, set(re.findall(r"(\w+)\s*[=!]~?", selector))))
    return found, grouped


def strangers(expression, known):
    """What the expression names and nobody exposes."""
    metrics, grouped = named(expression)
    assert metrics or expression.strip().startswith("vector"), expression
    missing = [name for name, _labels in metrics if name not in known]
    labels = {
        (name, label) for name, given in metrics for label in given if label not in known.get(name, set()) | TARGET
    }
    everywhere = TARGET.union(*(known.get(name, set()) for name, _labels in metrics))
    return [*missing, *sorted(labels), *sorted(grouped - everywhere)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('rate(node_cpu_seconds_total{mode="idle"}[2m])', []),
        ("sum by (node, gpu) (DCGM_FI_DEV_GPU_TEMP) > 3 and on (node) up", []),
        ("node_cpu_second_total", ["node_cpu_second_total"]),
        ('max(node_load1{cpu="0"})', [("node_load1", "cpu")]),
        ("sum by (gpus) (DCGM_FI_DEV_GPU_TEMP)", ["gpus"]),
        ("1 - foo_total / node_load1", ["foo_total"]),
        ("0.98 * max by (node) (DCGM_FI_DEV_SLOW_TEMP)", ["DCGM_FI_DEV_SLOW_TEMP"]),
    ],
)
def test_the_test_sees_what_nobody_exposes(expression, expected):
    assert strangers(expression, exposed()) == expected


@pytest.mark.parametrize("alert", load(), ids=lambda one: one.alert)
def test_alerts(alert):
    assert not strangers(alert.expr, exposed())


def queries(path):
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards(path, tmp_path):
    known = exposed()
    found = {title: strangers(expression, known) for title, expression in queries(path)}
    assert found and not {title: one for title, one in found.items() if one}
    rules = [{"record": f"one:{number}", "expr": expression.replace("$node", "x").replace("$gpu", "x")}
             for number, (_title, expression) in enumerate(queries(path))]  # fmt: skip
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "a", "rules": rules}]}), encoding="utf-8")
    status, said = promtool("check", "rules", tmp_path / "rules.json")
    assert status == 0, said


def test_the_dashboards():
    assert [path.stem for path in DASHBOARDS] == ["cluster", "fabric", "gpu", "node", "training"]
    for path in DASHBOARDS:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["uid"] == f"allreduce-{path.stem}" and content["title"].startswith("allreduce: ")
        titles = [panel["title"] for panel in content["panels"]]
        assert len(titles) == len(set(titles)) and {panel["datasource"]["uid"] for panel in content["panels"]} == {
            "allreduce"
        }
        places = [tuple(panel["gridPos"].values()) for panel in content["panels"]]
        assert len(places) == len(set(places)) and all(x + w <= 24 for x, _y, w, _h in places)
        names = {one["name"] for one in content["templating"]["list"]}
        used = set(re.findall(r"\$(\w+)", json.dumps([expression for _title, expression in queries(path)])))
        assert used <= names, path.stem
