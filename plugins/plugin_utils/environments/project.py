# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the project that uv solves for an environment on a node. Pure.

A project file, because only there a package can be bound to one index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..stack.inputs import find_os
from ..stack.tables import Tables, load
from ..stack.versions import at_least
from .extras import asked, with_packages

# What is read of the first host of a kind.
READS = (
    "frameworks_index_url",
    "python_env_environment",
    "python_env_find_links",
    "python_env_index_url",
    "python_env_no_index",
    "python_env_packages",
)
# Packages that a framework's own index is asked for; everything else comes from the package index.
OF_THE_INDEX = ("torch", "torchvision", "torchaudio")
# The glibc of uv's names of platforms (uv pip compile --help, 0.13.9), the newest first.
PLATFORMS = ("2.40", "2.39", "2.38", "2.37", "2.36", "2.35", "2.34", "2.33", "2.32", "2.31", "2.28", "2.17")


def project(environment: Mapping[str, Any]) -> str:
    """Return the pyproject.toml of an environment: name, python, requirements and index, which may be None."""
    lines = [
        "[project]",
        f"name = {json.dumps(environment['name'])}",
        'version = "0"',
        f'requires-python = "=={environment["python"]}.*"',
        f"dependencies = {json.dumps(list(environment['requirements']))}",
    ]
    if environment.get("index"):
        lines += ["", "[tool.uv.sources]", *(f'{package} = {{ index = "framework" }}' for package in OF_THE_INDEX)]
        url = json.dumps(environment["index"]["url"])
        lines += ["", "[[tool.uv.index]]", 'name = "framework"', f"url = {url}", "explicit = true"]
    return "\n".join(lines) + "\n"


def pylock_requests(
    plan: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], tables: Tables | None = None
) -> list[dict[str, Any]]:
    """Return the requests to solve for the pylock.toml (PEP 751) of every environment of a plan.

    Each is {host, name, file, project, arguments, environment}: the first host of its kind, whose variables say which packages
    and indexes, the file as seen from the directory of all, and what uv pip compile is told. Environments of conda have none.
    """
    tables = tables or load()
    return [
        _request(tables, kind["stack"], one, kind["hosts"][0], known.get(kind["hosts"][0]) or {})
        for kind in plan["stacks"]
        for one in with_packages(kind["stack"], asked(known.get(kind["hosts"][0]) or {}))["environments"]
        if one["interpreter"]["source"] != "conda"
    ]


def _request(
    tables: Tables, stack: Mapping[str, Any], one: Mapping[str, Any], host: str, variables: Mapping[str, Any]
) -> dict[str, Any]:
    index = one.get("index")
    if index and variables.get("frameworks_index_url"):
        index = {**index, "url": variables["frameworks_index_url"]}
    arguments = ["--python-version", one["python"], "--python-platform", platform(tables, stack["os"])]
    if boolean(variables.get("python_env_no_index"), strict=False):
        arguments.append("--no-index")
    return {
        "host": host,
        "name": one["name"],
        "file": f"{host}/pylock.{one['name']}.toml",
        "project": project({**one, "index": index}),
        "arguments": arguments,
        "environment": _environment(variables),
    }


def platform(tables: Tables, os: Mapping[str, Any]) -> str:
    """Return uv's name of a node's platform; the oldest where its glibc is not known."""
    glibc = find_os(tables, os)["glibc"] or PLATFORMS[-1]
    newest = next((one for one in PLATFORMS if at_least(glibc, one)), PLATFORMS[-1])
    return f"{os['arch']}-manylinux_{newest.replace('.', '_')}"


def _environment(variables: Mapping[str, Any]) -> dict[str, str]:
    """Return where uv looks, as role python_env has it on nodes; addresses may hold passwords, and arguments are logged."""
    index, links = variables.get("python_env_index_url"), variables.get("python_env_find_links") or ()
    found = {"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    found.update({"UV_DEFAULT_INDEX": str(index)} if index else {})
    found.update({"UV_FIND_LINKS": ",".join(str(link) for link in links)} if links else {})
    return {
        **found,
        **{str(name): str(value) for name, value in (variables.get("python_env_environment") or {}).items()},
    }
