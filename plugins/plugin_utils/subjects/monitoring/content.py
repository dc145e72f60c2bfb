# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a host and who reads them: drop-ins, configuration, rules, targets, and what only the services may read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import configuration, grafana, units
from .alerts import load, rules
from .counters import counters
from .host import Host
from .peers import targets
from .programs import USER, known_services

RECORD = "/var/lib/allreduce/monitoring.json"
REPOSITORY = "/etc/yum.repos.d/allreduce-monitoring.repo"
KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-allreduce-monitoring"
# Debian's package makes it.
PACKAGED = "/var/lib/prometheus/node-exporter"
Files = list[dict[str, Any]]


def started(host: Host) -> Files:
    """Return the drop-ins of the units and the record."""
    hardware = {"gpu_node": host.facts.get("gpu_node"), "shaped": host.shaped}
    found: Files = []
    for part, one in host.programs.items():
        command = [one.program, *units.arguments(part, host.wanted, host.source, host.address or "", hardware)]
        found.append({"path": units.path(one), "content": units.drop_in(command, host.wanted.tls)})
    record = {"format": 1, "services": sorted(one.service for one in host.programs.values())}
    return [*found, {"path": RECORD, "content": json.dumps(record) + "\n"}]


def repository(host: Host) -> dict[str, str]:
    """Return the declared repository of dnf; empty where the distribution has the packages.

    dnf takes the key from the file that was compared with the fingerprint, never from its address.
    """
    if host.source.origin != "declared":
        return {}
    wanted = host.wanted.repository
    url, fingerprint = wanted["url"], "".join(wanted["fingerprint"].split()).upper()
    lines = ["[allreduce-monitoring]", "name=Prometheus", f"baseurl={url}", "enabled=1", "gpgcheck=1"]
    content = configuration.HEADING + "\n".join([*lines, f"gpgkey=file://{KEY}"]) + "\n"
    return {"path": REPOSITORY, "content": content, "key": wanted["key"], "key_file": KEY, "fingerprint": fingerprint}


def open_files(host: Host) -> Files:
    """Return the files without secrets, those that others name first."""
    found: Files = []
    if "node" in host.programs and (host.source.origin, host.wanted.textfiles) != ("distribution", PACKAGED):
        found.append({"path": host.wanted.textfiles, "state": "directory", "mode": "0755"})
    if "dcgm" in host.programs:
        found.append({"path": units.COUNTERS, "content": counters()})
    if "prometheus" in host.programs:
        chosen = configuration.text(rules(load(), host.wanted.runbooks, host.wanted.skipped))
        found.append({"path": RULES, "content": chosen, "validate": ["promtool", "check", "rules", "%s"]})
        found += [
            {"path": f"{configuration.TARGETS}/{job}.json", "content": json.dumps(one, indent=1) + "\n"}
            for job, one in targets(host.peers).items()
        ]
    return found


def closed_files(host: Host, hashed: str) -> Files:
    """Return the files that only root and the services read, and last what names them: without it nothing starts."""
    closed = {"mode": "0640", "owner": "root", "group": host.group}
    wanted, found = host.wanted, list[dict[str, Any]]()
    if "prometheus" in host.programs:
        alerts, asks = configuration.alertmanager(wanted), configuration.prometheus(wanted, host.address or "")
        found += [
            {"path": configuration.PASSWORD_FILE, "content": wanted.password, **closed},
            {"path": ALERTMANAGER, "content": configuration.text(alerts), **closed, "validate": ["amtool", "check-config", "%s"]},
            {"path": PROMETHEUS, "content": configuration.text(asks), "validate": ["promtool", "check", "config", "%s"]},
        ]  # fmt: skip
        found += grafana.files(wanted, host.address or "") if wanted.grafana else []
    web = {"path": configuration.WEB, "content": configuration.text(configuration.web(wanted, hashed)), **closed}
    return [*found, {**web, **_proof(host)}]


def _proof(host: Host) -> dict[str, list[str]]:
    """Return the validation that tells whether the services can start with their web.yml, where a program for it is there.

    With a certificate that is missing, or that their user must not read, they would end again and again.
    """
    if host.wanted.tls and host.group == USER:
        files = [host.wanted.certificate, "-a", "-r", host.wanted.key]
        return {"validate": ["runuser", "-u", USER, "--", "test", "-r", *files]}
    if "prometheus" in host.programs and not host.wanted.tls:
        return {"validate": ["promtool", "check", "web-config", "%s"]}
    return {}


RULES = f"{configuration.RULES}/allreduce.yml"
PROMETHEUS = f"{configuration.DIRECTORY}/prometheus.yml"
ALERTMANAGER = f"{configuration.DIRECTORY}/alertmanager.yml"
# Files that a service reads when it is told to, or only as it starts. All others are read at each request, or watched.
READ = {
    "prometheus": ((RULES, PROMETHEUS), "try-reload-or-restart"),
    "alertmanager": ((ALERTMANAGER,), "try-reload-or-restart"),
    "dcgm": ((units.COUNTERS,), "try-restart"),
}


def told(host: Host, files: Files) -> Files:
    """Return the files with the command that tells a service of them, where it runs."""
    found = [(one.service, *READ[part]) for part, one in host.programs.items() if part in READ]
    found.append((grafana.SERVICE, (grafana.SOURCE, grafana.PROVIDER), "try-restart"))
    commands = {path: ["systemctl", verb, service] for service, paths, verb in found for path in paths}
    return [{**one, "then": commands[one["path"]]} if one["path"] in commands else one for one in files]


def removed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the things that go with the role: services that run or start with the host, and files, last the record.

    Files are named one by one: a site may have rules of its own next to ours.
    """
    services = (facts.get("gpu_node_state") or {}).get("services") or {}
    known = {name: services.get(name) or {} for name in known_services()}
    forgotten = {"state": "absent", "then": ["systemctl", "daemon-reload"]}
    files = [
        *(REPOSITORY, KEY, grafana.SOURCE, grafana.PROVIDER, RULES, PROMETHEUS, ALERTMANAGER, units.COUNTERS),
        *(configuration.PASSWORD_FILE, configuration.WEB),
        *(f"{configuration.TARGETS}/{job}.json" for job in configuration.JOBS),
        *(f"{grafana.DASHBOARDS}/{path.name}" for path in sorted(grafana.OURS.glob("*.json"))),
        RECORD,
    ]
    return {
        "services": [name for name, one in known.items() if one.get("enabled") or one.get("active")],
        "files": [
            *({"path": f"/etc/systemd/system/{name}.service.d/allreduce.conf", **forgotten} for name in known),
            *({"path": path, "state": "absent"} for path in files),
        ],
    }
