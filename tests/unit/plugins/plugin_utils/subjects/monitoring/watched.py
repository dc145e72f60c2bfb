# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imagined hosts that are watched, the files that role monitoring writes on them, and a client of their services."""

from __future__ import annotations

import base64
import socket
import urllib.error
import urllib.request

from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.answer import answer, files
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.configuration import DIRECTORY

PASSWORD = "correct horse battery"
GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2"], "controllers": ["ctl"]}
DEBIAN = {"os": {"id": "debian", "version": "12", "family": "debian"}, "gpus": [], "repository": None}
NVIDIA = {**DEBIAN, "gpus": [{"model": "H100"}], "repository": {"slug": "debian12"}}
REPOSITORY = {"url": "https://repo.example.org/el9", "key": "/etc/key.asc", "fingerprint": "ABCD 0123" + 8 * " EF01"}
PACKAGES = {"prometheus": "2.42", "prometheus-node-exporter": "1.5"}


def inventory(**variables):
    common = {"monitoring_state": "present", "monitoring_password": PASSWORD, **variables}
    addresses = {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2", "ctl": "fd00::9"}
    return {name: {"gpu_cluster_address": address, **common} for name, address in addresses.items()}


def facts(stack=None, **state):
    return {
        "gpu_stack": stack or DEBIAN,
        "gpu_node": {},
        "gpu_node_state": {"packages": PACKAGES, "services": {}, **state},
    }


def written(name, hostvars=None, groups=None, **given):
    """{path: entry} of all files of a host."""
    known = facts(**given)
    hostvars, groups = hostvars or inventory(), GROUPS if groups is None else groups
    found = answer(name, hostvars, groups, known)
    assert found["problems"] == []
    return {one["path"]: one for one in [*found["units"], *files(name, hostvars, groups, known)["files"]]}


def place(files_of_host, target):
    """Write the files below TARGET, with its paths in place of those on a host."""
    for path, one in files_of_host.items():
        if one.get("state", "file") == "file":
            there = target / path.lstrip("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(one["content"].replace(DIRECTORY, f"{target}{DIRECTORY}"), encoding="utf-8")
    return f"{target}{DIRECTORY}"


def authorisation(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def ask(url, user=None, password=None, context=None):
    request = urllib.request.Request(url, headers=authorisation(user, password) if user else {})
    # Ansible's fetching installs an opener for the whole process, with the proxies of whoever fetched last.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with direct.open(request, timeout=10) as answer_:
            return answer_.status
    except urllib.error.HTTPError as error:
        return error.code


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
