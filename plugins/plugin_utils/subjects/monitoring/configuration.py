# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Prometheus and Alertmanager, and what both and the exporters ask of who connects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from .peers import place
from .programs import PORTS
from .request import Request

DIRECTORY = "/etc/allreduce/monitoring"
RULES = f"{DIRECTORY}/rules"
TARGETS = f"{DIRECTORY}/targets"
PASSWORD_FILE = f"{DIRECTORY}/password"
WEB = f"{DIRECTORY}/web.yml"
HEADING = "# Written by role allreduce.gpu.monitoring; changes made here are lost.\n"
JOBS = ("node", "dcgm", "prometheus", "alertmanager")


def prometheus(wanted: Request, address: str) -> dict[str, Any]:
    """Return prometheus.yml; every file in the directory of rules counts, so that a site can put its own there."""
    return {
        "global": {"scrape_interval": wanted.interval, "evaluation_interval": wanted.interval},
        "rule_files": [f"{RULES}/*.yml"],
        "alerting": {
            "alertmanagers": [
                {**client(wanted), "static_configs": [{"targets": [place(address, PORTS["alertmanager"])]}]}
            ]
        },
        "scrape_configs": [
            {"job_name": job, **client(wanted), "file_sd_configs": [{"files": [f"{TARGETS}/{job}.json"]}]}
            for job in JOBS
        ],
    }


def client(wanted: Request) -> dict[str, Any]:
    """Return the client settings of Prometheus; the password stands in a file of its own."""
    found: dict[str, Any] = {"basic_auth": {"username": wanted.user, "password_file": PASSWORD_FILE}}
    if wanted.tls:
        found |= {"scheme": "https", "tls_config": {"ca_file": wanted.authority}}
    return found


def alertmanager(wanted: Request) -> dict[str, Any]:
    """Return alertmanager.yml: what the user declares, over defaults that only show what fires.

    One message for each node; what a node that does not answer cannot tell is not a message of its own.
    """
    silenced = "GpuHealthMissing|GpuHealthStale|GpuMetricsMissing"
    return {
        "route": {
            "receiver": "none", "group_by": ["node"], "group_wait": "10s", "group_interval": "1m", "repeat_interval": "12h",
        },
        "receivers": [{"name": "none"}],
        "inhibit_rules": [
            _inhibit('alertname="TargetDown", job="node"', f'alertname=~"{silenced}"'),
            _inhibit('alertname="GpuHealthFailed"', 'alertname="GpuHealthDegraded"'),
        ],
        **wanted.alertmanager,
    }  # fmt: skip


def _inhibit(source: str, target: str) -> dict[str, Any]:
    return {"source_matchers": source.split(", "), "target_matchers": [target], "equal": ["node"]}


def web(wanted: Request, hashed: str) -> dict[str, Any]:
    """Return the credentials that a server asks of its clients (prometheus/exporter-toolkit, docs/web-configuration.md)."""
    found: dict[str, Any] = {"basic_auth_users": {wanted.user: hashed}}
    if wanted.tls:
        found["tls_server_config"] = {"cert_file": wanted.certificate, "key_file": wanted.key, "min_version": "TLS12"}
    return found


def text(content: Mapping[str, Any]) -> str:
    """Return a value as a file of YAML."""
    return HEADING + str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=120))


def secrets(content: Any, key: str = "") -> list[str]:
    """Return the words of Alertmanager's configuration that are not for logs: passwords, tokens, and addresses that hold one."""
    if isinstance(content, Mapping):
        return [word for name, value in content.items() for word in secrets(value, str(name))]
    if isinstance(content, (list, tuple)):
        return [word for value in content for word in secrets(value, key)]
    marks = ("password", "secret", "token", "credentials", "api_url", "webhook_url", "_key", "routing_key")
    return [str(content)] if content and (key == "url" or any(mark in key for mark in marks)) else []
