# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a drop-in for each service, with the whole command line in place of the package's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .collectors import collectors
from .configuration import DIRECTORY, HEADING, WEB
from .peers import place
from .programs import PORTS, Program, Source
from .request import Request

COUNTERS = f"{DIRECTORY}/dcgm-counters.csv"


def path(program: Program) -> str:
    """Return where the drop-in stands."""
    return f"/etc/systemd/system/{program.service}.service.d/allreduce.conf"


def drop_in(command: Sequence[str], tls: bool) -> str:
    """Return a drop-in. Without our configuration nothing starts: a package that starts its service would open it to all users.

    The address may come up later than the service. Passwords and certificates are read for each connection, but whether there are
    any certificates only as the service starts (prometheus/exporter-toolkit, web/tls_config.go, Serve), so the unit says it: a unit
    that has changed restarts its service, also after a run that was interrupted.
    """
    line = " ".join(one.replace("%", "%%").replace("$", "$$") for one in command)
    encrypted = "# Connections are encrypted.\n" if tls else "# Connections are not encrypted.\n"
    return (
        f"{HEADING}{encrypted}[Unit]\nConditionPathExists={WEB}\nWants=network-online.target\nAfter=network-online.target\n"
        f"StartLimitIntervalSec=0\n\n[Service]\nExecStart=\nExecStart={line}\nRestart=on-failure\nRestartSec=5\n"
    )


def arguments(part: str, wanted: Request, source: Source, address: str, hardware: Mapping[str, Any]) -> list[str]:
    """Return the arguments of prometheus, alertmanager, node or dcgm; hardware: {gpu_node, shaped}."""
    at = place(address, PORTS[part])
    listen = [f"--web.listen-address={at}", f"--web.config.file={WEB}"]
    if part == "prometheus":
        return [
            f"--config.file={DIRECTORY}/prometheus.yml", f"--storage.tsdb.path={source.data}/metrics2",
            f"--storage.tsdb.retention.time={wanted.retention_time}", f"--storage.tsdb.retention.size={wanted.retention_size}",
            *listen,
        ]  # fmt: skip
    if part == "alertmanager":
        # Gossip between Alertmanagers knows no password.
        return [f"--config.file={DIRECTORY}/alertmanager.yml", f"--storage.path={source.data}/alertmanager", *listen,
                "--cluster.listen-address="]  # fmt: skip
    if part == "dcgm":
        return [f"--address={at}", f"--web-config-file={WEB}", f"--collectors={COUNTERS}"]
    names = collectors(hardware.get("gpu_node") or {}, bool(hardware.get("shaped")))
    return [
        f"--web.listen-address={at}", f"{source.web}={WEB}", f"--collector.textfile.directory={wanted.textfiles}",
        "--collector.disable-defaults", *(f"--collector.{name}" for name in names),
    ]  # fmt: skip
