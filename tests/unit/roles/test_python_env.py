# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role python_env does with the interpreters that the plan names, and that it refuses systems it does not know."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import environments
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.interpreters import STANDALONE

from tests.lab import wheels
from tests.support.local_play import run_roles

ROLE = Path(__file__).resolve().parents[3] / "roles" / "python_env"
ENVIRONMENT = {"name": "main", "python": "3.9", "accelerator": "cpu", "requirements": ["torch==2.8.0"], "index": None}
UV = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))["python_env_uv_version"]
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def interpreter(source, path=None, packages=()):
    """The interpreter of a planned environment."""
    return {"source": source, "path": path, "packages": list(packages)}


def facts(environments, system=("rocky", "9", "el")):
    """A host that is planned to have ENVIRONMENTS, and has nothing yet."""
    names = dict(zip(("id", "version", "family"), system, strict=True))
    apt = system[2] == "debian"
    return {
        "gpu_stack": {"os": {**names, "arch": "x86_64"}, "gpus": [], "environments": environments},
        "gpu_node": {"gpus": []},
        "gpu_node_state": {
            "package_manager": "apt" if apt else "dnf", "packages": {"bash": "5.2"}, "environments": {}, "container": False,
        },
    }  # fmt: skip


def flat(output):
    """Return the output with single spaces."""
    return re.sub(r"\s+", " ", output)


@pytest.mark.parametrize("role", ["python_env", "frameworks"])
def test_an_unknown_system_is_refused_with_one_sentence(role, tmp_path):
    run = run_roles(tmp_path, [role], facts([ENVIRONMENT], ("sles", "15", "suse")))
    assert run.status == 2, run.output
    said = flat(run.output)
    assert (
        "Role python_env does not know the operating system sles 15: set pytorch to none in the gpu_stack_request of node,"
        " and name no other framework there, to install driver and libraries only."
    ) in said
    assert "Could not find" not in said
    assert run.executions == []


SYSTEMS = [
    (("debian", "12", "debian"), interpreter("distribution", "/usr/bin/python3.9", ["python3.9"]),
     ["ca-certificates", "python3-venv", "python3.9"]),
    (("rocky", "9", "el"), interpreter("distribution", "/usr/bin/python3.11", ["python3.11"]),
     ["ca-certificates", "python3", "python3.11"]),
    (("rocky", "10", "el"), interpreter("standalone"), ["ca-certificates", "python3"]),
    (("almalinux", "8", "el"), interpreter("distribution", "/usr/bin/python3.8", ["python38"]),
     ["ca-certificates", "python38"]),
    (("almalinux", "8", "el"), interpreter("standalone"), ["ca-certificates", "python3.11"]),
    (("centos", "8", "el"), interpreter("standalone"), ["ca-certificates", "python39"]),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("system", "planned", "packages"), SYSTEMS)
def test_packages_of_interpreters_and_of_uv(system, planned, packages, tmp_path):
    """Check mode names them, in one transaction."""
    run = run_roles(
        tmp_path, ["python_env"], facts([{**ENVIRONMENT, "interpreter": planned}], system), "--check", "--diff"
    )
    assert run.status == 0, run.output
    assert re.findall(r"(?m)^\+(?!\+)(\S+)", run.output) == packages
    changed = re.findall(
        r"(?m)^TASK \[allreduce.gpu.python_env : ([^]]*)\] \**\n(?:---.*\n(?:.*\n)*?)?changed:", run.output
    )
    standalone = ["Install Python 3.9"] if planned and planned["source"] == "standalone" else []
    assert [name for name in changed if name.startswith(("Install uv 0", "Install Python"))] == [
        next(name for name in changed if name.startswith("Install uv 0")), *standalone,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "python", "said"),
    [
        (sys.executable, OWN, None),
        (sys.executable, "3.6", f"{sys.executable} is Python {OWN}, and Python 3.6 is planned;"),
        (
            "/nowhere/bin/python3.6",
            "3.6",
            "/nowhere/bin/python3.6 is missing or does not run, and Python 3.6 is planned;",
        ),
    ],
)
def test_only_the_interpreter_that_was_named_is_used(path, python, said, tmp_path):
    environment = {**ENVIRONMENT, "python": python, "interpreter": interpreter("path", path)}
    run = run_roles(tmp_path, ["python_env"], facts([environment]), "--check")
    if said is None:
        assert run.status == 0, run.output
        return
    assert run.status == 2, run.output
    sentence = f"Cannot create environment main: {said} name such an interpreter with python_env_python, or set gpu_stack_request.python."
    assert sentence in flat(run.output)


@pytest.mark.parametrize(("uv", "installs"), [(UV, False), ("0.0.1", True), (None, True)])
def test_uv_is_installed_where_its_version_is_another(uv, installs, tmp_path):
    given = facts([{**ENVIRONMENT, "interpreter": interpreter("distribution", "/usr/bin/python3.9", ["python3"])}])
    given["gpu_node_state"]["uv"] = uv
    run = run_roles(tmp_path, ["python_env", "python_env"], given, "--check")
    assert run.status == 0, run.output
    assert run.output.count(f"Install uv {UV}]") == int(installs)
    assert not [row for row in run.executions if str(row["module"]).endswith("command") and not installs]


def test_an_environment_as_planned_is_left_alone(tmp_path):
    given = facts([{**ENVIRONMENT, "interpreter": interpreter("distribution", "/usr/bin/python3.9", ["python3"])}])
    given["gpu_node_state"]["packages"] = {"python3": "3.9.18-1.el9", "ca-certificates": "2024-1.el9"}
    given["gpu_node_state"]["environments"] = {"main": {"python": "3.9.18", "home": "/usr/bin"}}
    run = run_roles(tmp_path, ["python_env"], given, "--check")
    assert run.status == 0, run.output
    assert "Install Python" not in run.output


RATTLER = "/opt/allreduce/conda/rattler/bin/rattler"


def test_rattler_on_nodes_is_the_one_the_project_is_tested_with():
    given = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    pinned = (ROLE.parents[1] / "requirements-dev.txt").read_text(encoding="utf-8")
    match = re.search(r"^py-rattler==(\S+) ((?:\\\n\s+--hash=\S+\s*)+)", pinned, re.MULTILINE)
    assert given["__python_env_rattler_version"] == match[1]
    hashes = set(re.findall(r"--hash=(\S+)", given["__python_env_rattler_requirement"]))
    assert len(hashes) == 2 and hashes <= set(re.findall(r"--hash=(\S+)", match[2]))
    assert f"py-rattler=={match[1]}" in wheels.get("conda").requirements


def installed_rattler(system="rocky 9"):
    """What a node has once rattler is installed there, as it is measured."""
    given = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    requirement = given["__python_env_rattler_requirement"].replace(
        "{{ __python_env_rattler_version }}", given["__python_env_rattler_version"]
    )
    program = (ROLE / "files" / "rattler_program.py").read_text(encoding="utf-8")
    text = f"#!/opt/allreduce/conda/rattler/bin/python -I\n# {requirement}\n# With the Python of {system}.\n{program}"
    return f"file 0755 root:root {hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize(("script", "last"), [("rattler", "pip install"), ("download", "python install")])
def test_what_is_installed_is_on_the_disk_before_anything_says_so(tmp_path, script, last):
    """Else a power cut leaves empty files, which count as installed in every run after that."""
    given = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    places = {name: str(tmp_path / name) for name in ("uv", "sync", "interpreters", "rattler_root")}
    for name in ("uv", "sync", "selinuxenabled"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$*" >> {tmp_path}/done\n[ {name} != selinuxenabled ]\n')
        (tmp_path / name).chmod(0o755)
    text = jinja2.Environment(autoescape=False).from_string(given[f"__python_env_{script}_script"])  # noqa: S701 (no page)
    said = text.render(
        __python_env_uv=places["uv"], __python_env_interpreters=places["interpreters"], __python_env_no_index=[],
        __python_env_rattler_root=places["rattler_root"], __python_env_bootstrap={"python": "/usr/bin/python3"},
    )  # fmt: skip
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["/bin/sh", "-c", said, "3.12"], check=True, env={"PATH": path})
    done = [line for line in (tmp_path / "done").read_text().splitlines() if not line.startswith("selinuxenabled")]
    assert done[-2].startswith(f"uv {last} ")
    assert done[-1] == f"sync --file-system {places['rattler_root' if script == 'rattler' else 'interpreters']}"


NAMED = {"python_env_conda_program": "/opt/miniforge3/bin/conda"}


@pytest.mark.parametrize(
    ("variables", "there", "does"),
    [
        ({}, None, "Install"),
        ({}, "file 0755 root:root " + "0" * 64, "Install"),
        ({}, installed_rattler(), None),
        ({}, installed_rattler("rocky 8"), "Install"),  # before the distribution was upgraded
        (NAMED, None, None),
        (NAMED, installed_rattler(), "Remove"),
        ({"python_env_manager": "uv"}, installed_rattler(), "Remove"),
        ({"python_env_manager": "uv"}, "absent", None),
    ],
)
def test_rattler_is_there_where_conda_needs_it(variables, there, does, tmp_path):
    by_uv = {**ENVIRONMENT, "interpreter": interpreter("distribution", "/usr/bin/python3.9", ["python3"])}
    given = facts(
        [by_uv if "python_env_manager" in variables else {**ENVIRONMENT, "interpreter": interpreter("conda")}]
    )
    given["gpu_node_state"] |= {"uv": UV, "files": {RATTLER: there} if there else {}}
    run = run_roles(tmp_path, ["python_env"], given, "--check", "--extra-vars", json.dumps(variables))
    assert run.status == 0, run.output
    done = re.findall(r"(?m)^TASK \[\S+ : (Install|Remove) rattler [^]]*\] \**\n(?:ok|changed)", run.output)
    assert done == ([does] if does else [])


@pytest.mark.long
def test_modulefiles_on_request(tmp_path):
    """What they do to a shell is seen on a host, in scenario 40."""
    given = facts([{**ENVIRONMENT, "frameworks": {"pytorch": "2.8.0"}}])
    assert "Write modulefiles" not in run_roles(tmp_path, ["python_env"], given, "--check", "--diff").output
    run = run_roles(
        tmp_path, ["python_env"], given, "--check", "--diff", "--extra-vars", '{"python_env_modulefiles": true}'
    )
    assert run.status == 0, run.output
    for line in (
        "+#%Module1.0",
        '+module-whatis "Python 3.9, pytorch 2.8.0"',
        "+conflict allreduce",
        "+prepend-path PATH /opt/allreduce/envs/main/bin",
        "+  module use --append /opt/allreduce/modulefiles",
    ):
        assert f"\n{line}\n" in run.output, line


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (None, "the list that python_env_python_downloads names cannot be fetched; check address, proxy and network: "),
        (
            {},
            "the list that python_env_python_downloads names has no sha256 for cpython-3.9.18-linux-x86_64-gnu; add it.",
        ),
        ({"sha256": "1" * 64}, "Cannot install Python 3.9: /nowhere/cpython.tar.gz cannot be downloaded ("),
    ],
)
def test_a_list_of_interpreters_is_refused_with_one_sentence(build, said, tmp_path):
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists():
        pytest.skip("uv is not installed beside this Python")
    given = facts([{**ENVIRONMENT, "interpreter": interpreter("standalone")}])
    given["gpu_node_state"]["uv"] = UV
    entry = {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux", "libc": "gnu", "major": 3, "minor": 9,
        "patch": 18, "prerelease": "", "variant": None, "build": "1", "url": "file:///nowhere/cpython.tar.gz",
    }  # fmt: skip
    if build is not None:
        (tmp_path / "list.json").write_text(json.dumps({"cpython-3.9.18-linux-x86_64-gnu": {**entry, **build}}))
    variables = {
        "python_env_python_downloads": str(tmp_path / "list.json"), "__python_env_uv": str(uv),
        "__python_env_list": str(tmp_path / "fetched.json"), "__python_env_interpreters": str(tmp_path / "python"),
        "python_env_environment": {"UV_CACHE_DIR": str(tmp_path / "cache")},
    }  # fmt: skip
    run = run_roles(tmp_path, ["python_env"], given, "--extra-vars", json.dumps(variables))
    assert run.status == 2, run.output
    assert "Cannot install Python 3.9" in flat(run.output)
    assert said in flat(run.output)
    assert not list((tmp_path / "python").glob("cpython*"))


def test_a_list_of_interpreters_is_not_waited_for_without_an_end(monkeypatch, tmp_path):
    asked = []

    def urlopen(address, **options):
        asked.append((address, options))
        return io.BytesIO(b"{}")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(sys, "stdin", io.StringIO("https://mirror.example/list.json\n"))
    monkeypatch.setattr(sys, "argv", ["-c", str(tmp_path / "list.json")])
    script = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))["__python_env_fetch_script"]
    exec(script, {})  # noqa: S102 - as the role's command does
    assert asked == [("https://mirror.example/list.json", {"timeout": 60})]
    assert (tmp_path / "list.json").read_bytes() == b"{}"


def test_what_is_measured_has_the_place_that_the_role_gives_it():
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    assert (
        variables["__python_env_uv"].replace("{{ __python_env_uv_root }}", variables["__python_env_uv_root"])
        == environments.UV
    )
    assert variables["__python_env_root"] == environments.ENVIRONMENTS


def test_standalone_interpreters_have_one_place():
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    assert variables["__python_env_interpreters"] == STANDALONE


def test_uv_and_pip_read_the_proxies_from_the_file_of_role_base():
    """What a task has in its environment stands in the command line of sudo, which logs it."""
    ours, base = (
        yaml.safe_load((ROLE.parent / role / "vars" / "main.yml").read_text(encoding="utf-8"))
        for role in ("python_env", "base")
    )
    (file,) = [one["path"] for one in base["__base_files"] if one["path"].endswith("proxy.sh")]
    assert f". {file};" in ours["__python_env_umask"][2]
    environments = {name: value for name, value in ours.items() if name.endswith("_environment")}
    assert environments
    assert "proxy" not in str(environments).lower()
