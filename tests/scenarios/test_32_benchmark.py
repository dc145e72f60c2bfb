# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook benchmark on two hosts, whose GPUs are simulated: it measures their processors, alone and together, and the report shows it."""

import json

import pytest

pytestmark = pytest.mark.lab

QUICK = ["--seconds", "0.05", "--repeats", "2", "--steps", "1", "--gemm-size", "256", "--image-size", "32"]


def test_two_hosts_are_measured_alone_and_together(cluster):
    given = {"benchmark_args": QUICK, "benchmark_nodes": 2}
    run = cluster.play("playbooks/benchmark.yml", "-e", json.dumps(given))
    assert run.status == 0, run.output[-6000:]
    reports = cluster.inventory / ".reports"
    newest = sorted(reports.glob("benchmarks/*/benchmark.json"))[-1]
    found = json.loads(newest.read_text(encoding="utf-8"))
    hosts = list(cluster.hosts[:2])
    assert [(one["name"], one["nodes"], one["status"]) for one in found["runs"]] == [
        ("node", hosts[:1], "succeeded"), ("nodes", hosts, "succeeded"), ("node", hosts[1:], "succeeded"),
    ]  # fmt: skip
    together = found["runs"][1]["document"]
    assert (together["world_size"], together["backend"]) == (2, "gloo")
    assert {one["node"] for one in together["ranks"]} == set(hosts)
    measured = {one["name"] for one in together["measurements"] if one["status"] == "measured"}
    assert measured == {"all_reduce", "all_gather", "training"}
    for host in hosts:
        assert cluster.on(host, "ls /var/lib/allreduce/runs | grep -c -e '-node' || true").strip() == "0"
