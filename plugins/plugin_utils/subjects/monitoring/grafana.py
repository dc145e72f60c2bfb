# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provisioning of a Grafana: a data source and a directory of dashboards (grafana.com/docs/grafana/latest/administration/provisioning)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .configuration import DIRECTORY, text
from .peers import place
from .programs import PORTS
from .request import Request

SOURCE = "/etc/grafana/provisioning/datasources/allreduce.yml"
PROVIDER = "/etc/grafana/provisioning/dashboards/allreduce.yml"
DASHBOARDS = f"{DIRECTORY}/dashboards"
SERVICE, GROUP = "grafana-server", "grafana"
PACKAGES = ("grafana", "grafana-enterprise")
OURS = Path(__file__).resolve().parents[4] / "roles" / "monitoring" / "files" / "dashboards"


def is_installed(facts: Mapping[str, Any]) -> bool:
    """Return True if a host has Grafana."""
    packages = (facts.get("gpu_node_state") or {}).get("packages") or {}
    return any(name in packages for name in PACKAGES)


def files(wanted: Request, address: str) -> list[dict[str, Any]]:
    """Return the files, that with the password readable for Grafana alone."""
    dashboards = [
        {"path": f"{DASHBOARDS}/{path.name}", "content": path.read_text(encoding="utf-8")}
        for path in sorted(OURS.glob("*.json"))
    ]
    closed = {"mode": "0640", "owner": "root", "group": GROUP}
    return [
        *dashboards,
        {"path": PROVIDER, "content": text(provider())},
        {"path": SOURCE, "content": text(source(wanted, address)), **closed},
    ]


def provider() -> dict[str, Any]:
    """Return where Grafana finds the dashboards; it looks there again and again."""
    one = {
        "name": "allreduce",
        "folder": "allreduce",
        "type": "file",
        "disableDeletion": True,
        "options": {"path": DASHBOARDS},
    }
    return {"apiVersion": 1, "providers": [one]}


def literal(value: str) -> str:
    """Return a value as it stands in such a file: Grafana replaces $NAME and $__file{path} there (its documentation, Provision Grafana)."""
    return value.replace("$", "$$")


def source(wanted: Request, address: str) -> dict[str, Any]:
    """Return the data source, by the uid that the dashboards name."""
    scheme = "https" if wanted.tls else "http"
    secure = {"basicAuthPassword": literal(wanted.password)}
    secure |= {"tlsCACert": f"$__file{{{wanted.authority}}}"} if wanted.tls else {}
    one = {
        "name": "allreduce", "uid": "allreduce", "type": "prometheus", "access": "proxy",
        "url": f"{scheme}://{place(address, PORTS['prometheus'])}", "basicAuth": True, "basicAuthUser": wanted.user,
        "secureJsonData": secure,
        "jsonData": {"timeInterval": wanted.interval, **({"tlsAuthWithCACert": True} if wanted.tls else {})}, "editable": False,
    }  # fmt: skip
    return {"apiVersion": 1, "datasources": [one]}
