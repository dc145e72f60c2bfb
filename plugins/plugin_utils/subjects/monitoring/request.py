# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role monitoring, and refuse invalid values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...cluster.address import READS
from ...problems.problem import Problem
from ..options import as_list
from .alerts import RUNBOOKS, load

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "monitoring_state": "absent",
    "monitoring_user": "allreduce",
    "monitoring_password": "",
    "monitoring_tls_certificate": "",
    "monitoring_tls_key": "",
    "monitoring_tls_authority": "",
    "monitoring_scrape_interval": "15s",
    "monitoring_retention_time": "30d",
    "monitoring_retention_size": "20GB",
    "monitoring_alertmanager": {},
    "monitoring_skip_alerts": [],
    "monitoring_runbooks": RUNBOOKS,
    "monitoring_repository": {},
    "monitoring_dcgm_exporter": True,
    "monitoring_textfile_directory": "/var/lib/prometheus/node-exporter",
    "monitoring_grafana": False,
}
CONTROLLERS, NODES = "controllers", "gpu_nodes"
# What is read of the other hosts: where they answer, what is asked for there, and whether NVIDIA's exporter can be had.
READS_OF_OTHERS = (
    *READS,
    "monitoring_state",
    "monitoring_dcgm_exporter",
    *(f"ansible_facts.gpu_stack.{name}" for name in ("dcgm", "gpus", "os", "repository")),
    "ansible_facts.gpu_node_state.records",
)
TLS = ("monitoring_tls_certificate", "monitoring_tls_key", "monitoring_tls_authority")
REPOSITORY = ("url", "key", "fingerprint")
# Of the repository's values: the whole fingerprint is compared.
_REPOSITORY = {
    "url": (r"(https?|file)://\S+", "https://repo.example.org/el9"),
    "key": (r"((https?|file):/)?/\S+", "https://repo.example.org/key.asc"),
    "fingerprint": (r"([0-9A-Fa-f]\s*){40}", "the 40 digits that gpg --show-keys prints"),
}
# bcrypt reads no more bytes than the last (its paper, and every implementation); fewer than the first are soon guessed.
PASSWORD = (12, 72)
# Of a file that programs are told by its place; one that is not a whole path would be looked for next to web.yml.
_PATH = r"/[^\s\"'%\\$]+"
# prometheus/common, model/time.go, and prometheus/prometheus, --storage.tsdb.retention.size.
_FORMS = {
    "monitoring_scrape_interval": (r"[1-9][0-9]*(s|m)", "15s"),
    "monitoring_retention_time": (r"[1-9][0-9]*(h|d|w|y)", "30d"),
    "monitoring_retention_size": (r"[1-9][0-9]*(MB|GB|TB)", "20GB"),
    "monitoring_user": (r"[A-Za-z0-9._-]{1,32}", "allreduce"),
    "monitoring_textfile_directory": (_PATH, "/var/lib/prometheus/node-exporter"),
    **dict.fromkeys(TLS, (f"({_PATH})?", "/etc/ssl/monitoring.pem")),
    "monitoring_runbooks": (r"https?://\S+", RUNBOOKS),
}


def hosts_of(groups: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the hosts that watch or are watched."""
    return [*groups.get(NODES, ()), *groups.get(CONTROLLERS, ())]


@dataclass(frozen=True)
class Request:
    """The variables of a host."""

    present: bool = False
    user: str = "allreduce"
    password: str = ""
    certificate: str = ""
    key: str = ""
    authority: str = ""
    interval: str = "15s"
    retention_time: str = "30d"
    retention_size: str = "20GB"
    alertmanager: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    runbooks: str = RUNBOOKS
    repository: Mapping[str, str] = field(default_factory=dict)
    dcgm: bool = True
    textfiles: str = "/var/lib/prometheus/node-exporter"
    grafana: bool = False

    @property
    def tls(self) -> bool:
        """Return True if certificates are declared."""
        return bool(self.certificate)


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the role, those that are not set with its defaults."""
    return {name: variables.get(name, default) for name, default in DEFAULTS.items()}


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request for a host; for variables without problems."""
    mine = given(variables)
    text = {name.removeprefix("monitoring_"): str(value or "") for name, value in mine.items()}
    return Request(
        present=text["state"] == "present",
        user=text["user"],
        password=text["password"],
        certificate=text["tls_certificate"],
        key=text["tls_key"],
        authority=text["tls_authority"],
        interval=text["scrape_interval"],
        retention_time=text["retention_time"],
        retention_size=text["retention_size"],
        alertmanager=dict(mine["monitoring_alertmanager"] or {}),
        skipped=tuple(map(str, as_list(mine["monitoring_skip_alerts"]))),
        runbooks=text["runbooks"],
        repository={str(key): str(value) for key, value in (mine["monitoring_repository"] or {}).items()},
        dcgm=boolean(text["dcgm_exporter"], strict=False),
        textfiles=text["textfile_directory"],
        grafana=boolean(text["grafana"], strict=False),
    )


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that are set; no fact of a host is needed for it, and no secret is named."""
    mine = given(variables)
    for name, (form, example) in _FORMS.items():
        if not re.fullmatch(form, str(mine[name])):
            yield Problem("monitoring_form", name, {"value": str(mine[name]), "example": example})
    names = [one.alert for one in load()]
    for one in map(str, as_list(mine["monitoring_skip_alerts"])):
        if one not in names:
            yield Problem("monitoring_no_alert", one, {"alerts": names})
    password = str(mine["monitoring_password"] or "")
    # Prometheus takes space at both ends of the file with the password away (prometheus/common, config/http_config.go).
    typed = password.isprintable() and password == password.strip()
    if password and not (PASSWORD[0] <= len(password.encode()) <= PASSWORD[1] and typed):
        yield Problem("monitoring_password", "monitoring_password", {"least": PASSWORD[0], "most": PASSWORD[1]})
    lacking = [key for key in REPOSITORY if not (mine["monitoring_repository"] or {}).get(key)]
    if mine["monitoring_repository"] and lacking:
        yield Problem("monitoring_repository", ", ".join(lacking), {"keys": REPOSITORY})
    for key, (form, example) in _REPOSITORY.items() if mine["monitoring_repository"] and not lacking else ():
        value = str(mine["monitoring_repository"][key])
        if not re.fullmatch(form, value):
            yield Problem("monitoring_form", f"monitoring_repository.{key}", {"value": value, "example": example})


def lacking(wanted: Request) -> Iterator[Problem]:
    """Yield the problems of values that a host lacks that is to be watched: values that only together make sense."""
    if not wanted.password:
        yield Problem("monitoring_no_password", "monitoring_password")
    paths = dict(zip(TLS, (wanted.certificate, wanted.key, wanted.authority), strict=True))
    missing = [name for name, path in paths.items() if not path]
    if 0 < len(missing) < len(paths):
        yield Problem("monitoring_tls", ", ".join(missing), {"names": TLS})
