# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role monitoring in check mode on this machine: what it asks of a host, what it shows of secrets, and what it refuses."""

import json
import re

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.units import UNITS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.programs import known_services
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.request import DEFAULTS

from tests.support.local_play import CHECKOUT, run_roles

PASSWORD = "correct horse battery"
PRESENT = {"monitoring_state": "present", "monitoring_password": PASSWORD}
BOTH = ("gpu_nodes", "controllers")
DEBIAN = {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"}
ROCKY = {"id": "rocky", "version": "9", "family": "el", "arch": "x86_64"}


DCGM = {
    "version": "4.6.1",
    "packages": [{"name": f"datacenter-gpu-manager-4-{name}", "version": "1:4.6.1-1"} for name in ("core", "cuda13")],
}


def play(place, *options, groups=BOTH, recorded=False, system=None, services=None, planned=None, **variables):
    system = system or DEBIAN
    facts = {
        "gpu_stack": {"os": system, "gpus": [], "repository": None, **(planned or {})},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {
            "package_manager": "apt", "packages": {}, "leftover_packages": {}, "services": services or {},
            "records": ["monitoring"] if recorded else [],
        },
        "distribution_version": system["version"],
        "default_ipv4": {"address": "10.1.0.7"},
    }  # fmt: skip
    words = ("--check", "--diff", "-e", json.dumps(variables), *options)
    return run_roles(place, ["monitoring"], facts, *words, groups=groups)


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize(
    ("groups", "recorded", "variables"),
    [(BOTH, False, {}), ((), False, PRESENT), ((), True, {}), (("controllers",), False, {})],
)
def test_off_costs_nothing(tmp_path, groups, recorded, variables):
    run = play(tmp_path, groups=groups, recorded=recorded, **variables)
    assert run.status == 0, run.output
    assert modules(run) == []


@pytest.mark.parametrize("variables", [{}, PRESENT])
def test_the_planned_dcgm_comes_whether_or_not_the_host_is_watched(tmp_path, variables):
    run = play(tmp_path, planned={"dcgm": DCGM}, **variables)
    assert run.status == 0, run.output
    assert "datacenter-gpu-manager-4-cuda13" in run.output
    assert ("+++ after: packages of dcgm" in run.output, "packages of monitoring" in run.output) == (
        True,
        bool(variables),
    )


@pytest.mark.parametrize("planned", [{}, {"dcgm": None}])
def test_no_dcgm_comes_that_nobody_planned(tmp_path, planned):
    run = play(tmp_path, planned=planned, **PRESENT)
    assert run.status == 0, run.output
    assert "packages of dcgm" not in run.output


def test_what_is_there_goes(tmp_path):
    running = {"prometheus": {"enabled": True, "active": True, "outdated": False}}
    run = play(tmp_path, recorded=True, services=running)
    assert run.status == 0, run.output
    assert modules(run) == ["config_files"]
    assert "+++ after: service prometheus" in run.output


def test_what_would_be_done_is_shown_without_secrets(tmp_path):
    run = play(tmp_path, "-vvv", **PRESENT)
    assert run.status == 0, run.output
    assert modules(run)[:1] == ["config_files"]
    for words in ("+++ after: packages of monitoring", "10.1.0.7:9100", "retention.time=30d", "alert: GpuXidFatal"):
        assert words in run.output, words
    assert re.findall(r"(?m)^\+\+\+ after: service (\S+)", run.output) == [
        "prometheus", "prometheus-alertmanager", "prometheus-node-exporter",
    ]  # fmt: skip
    shown = run.output.replace(json.dumps(PRESENT), "")
    assert "$2b$" not in run.output and not re.search(rf"{PASSWORD}(?!\"}})", shown), "a secret is shown"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"monitoring_password": ""}, "monitoring_password is not set"),
        ({"monitoring_password": "short"}, "monitoring_password is too short"),
        ({"monitoring_retention_size": "20"}, "monitoring_retention_size is '20'; use a form such as 20GB"),
        ({"monitoring_skip_alerts": ["Sun"]}, "monitoring_skip_alerts has Sun, which is not an alert"),
        ({"monitoring_tls_key": "/etc/a"}, "monitoring_tls_certificate, monitoring_tls_authority is not set"),
        ({"groups": ["gpu_nodes"]}, "No host is in group controllers"),
        ({"system": ROCKY}, "Neither rocky 9 nor EPEL has Prometheus; declare a repository"),
        ({"system": {**DEBIAN, "id": "ubuntu", "version": "20.04"}}, "There is no monitoring for ubuntu 20.04 (its node exporter"),
        ({"services": {"prometheus": {"active": True}}}, "prometheus already runs on node"),
    ],
)  # fmt: skip
def test_refused_before_anything_changes(tmp_path, variables, words):
    run = play(tmp_path, **{**PRESENT, **variables})
    assert run.status != 0 and modules(run) == []
    assert words in re.sub(r"\s+", " ", run.output), run.output


@pytest.mark.parametrize(("asked", "refused"), [({}, False), ({"monitoring_dcgm_exporter": True}, True)])
def test_the_role_s_default_asks_for_no_exporter_that_cannot_be_had(tmp_path, asked, refused):
    """NVIDIA's repository has none for Debian 13."""
    planned = {"gpus": [{"model": "H100"}], "repository": {"slug": "debian13"}}
    run = play(tmp_path, system={**DEBIAN, "version": "13"}, planned=planned, **PRESENT, **asked)
    assert ("There is no dcgm-exporter for node" in re.sub(r"\s+", " ", run.output)) is refused, run.output
    assert (run.status != 0) is refused


def test_the_defaults_are_those_of_the_role():
    defaults = yaml.safe_load((CHECKOUT / "roles/monitoring/defaults/main.yml").read_text(encoding="utf-8"))
    assert defaults == DEFAULTS


def test_a_node_tells_of_every_service():
    assert set(known_services()) <= set(UNITS)


def test_the_exporter_reads_where_the_health_check_writes():
    text = (CHECKOUT / "roles" / "health" / "defaults" / "main.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["health_textfile_directory"] == DEFAULTS["monitoring_textfile_directory"]
