# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons of the distributions: relations and streams as the tables say, files where the package manager's Python looks."""

from __future__ import annotations

import pytest
import yaml

from tests.lab import paths, replicas
from tests.lab.mirror import catalogue, dnf, pythons, stub_python, system
from tests.lab.mirror.model import Package
from tests.lab.mirror.payload import Builder

DISTROS = yaml.safe_load((paths.CHECKOUT / "data/stack/distros.yml").read_text(encoding="utf-8"))
OF_BASE = {"bullseye": "3.9", "bookworm": "3.11", "trixie": "3.13"}

TREE = {
    "bin/python3.11": (b"program", 0o755),
    "bin/python3": ("python3.11", 0o777),
    "include/python3.11/Python.h": (b"", 0o644),
    "lib/libpython3.11.so": ("libpython3.11.so.1.0", 0o777),
    "lib/python3.11/os.py": (b"", 0o644),
    "lib/python3.11/_sysconfigdata__x.py": (b"prefix = '/install'", 0o644),
    "lib/python3.11/lab/libpython3.11.so.1.0": (b"", 0o755),
    "lib/python3.11/site-packages/pip/__init__.py": (b"", 0o644),
    "lib/python3.11/ensurepip/__init__.py": (b"", 0o644),
    "lib/python3.11/ensurepip/_bundled/pip-23-py3-none-any.whl": (b"", 0o644),
    "lib/python3.11/ensurepip/_bundled/setuptools-65-py3-none-any.whl": (b"", 0o644),
}


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    monkeypatch.setattr(stub_python.interpreters, "files", lambda version: TREE)
    monkeypatch.setattr(stub_python, "launcher", lambda version: b"launcher")


def _files(manager, kind):
    return Builder(manager, {}).build(Package("any", "1", files=(kind,), python="3.11"))


LIBRARY = ["_sysconfigdata__x.py", "lab/libpython3.11.so.1.0", "os.py"]
PIP, SETUPTOOLS = (f"ensurepip/_bundled/{name}-py3-none-any.whl" for name in ("pip-23", "setuptools-65"))


@pytest.mark.parametrize(
    ("manager", "kind", "expected"),
    [
        ("apt", "python_program", ["/usr/bin/python3.11"]),
        ("dnf", "python_program", ["/usr/bin/python3.11"]),
        ("apt", "python_library", [f"/usr/lib/python3.11/{name}" for name in LIBRARY]),
        ("dnf", "python_library", [f"/usr/lib64/python3.11/{name}" for name in [*LIBRARY[:1], "ensurepip/__init__.py", *LIBRARY[1:]]]),
        ("apt", "python_ensurepip", [f"/usr/lib/python3.11/{name}" for name in ("ensurepip/__init__.py", PIP, SETUPTOOLS)]),
        ("dnf", "python_wheel_pip", [f"/usr/lib64/python3.11/{PIP}"]),
        ("dnf", "python_wheel_setuptools", [f"/usr/lib64/python3.11/{SETUPTOOLS}"]),
        ("apt", "python_headers", ["/usr/include/python3.11/Python.h"]),
    ],
)  # fmt: skip
def test_files_lie_where_the_real_ones_do(manager, kind, expected):
    assert sorted(_files(manager, kind).files) == sorted(expected)


def test_programs_and_prefix():
    payload = _files("apt", "python_library")
    assert payload.files["/usr/lib/python3.11/_sysconfigdata__x.py"] == b"prefix = '/usr'"
    assert (_files("apt", "python_program").files, _files("dnf", "python_program").files) == (
        {"/usr/bin/python3.11": b"program"},
        {"/usr/bin/python3.11": b"launcher"},
    )
    assert _files("dnf", "python_program").programs == {"/usr/bin/python3.11"}


def test_python_38_cannot_be_told_where_its_library_is():
    assert [stub_python.library_directory("dnf", python) for python in ("3.8", "3.9", "3.11")] == [
        "lib",
        "lib64",
        "lib64",
    ]
    assert stub_python.library_directory("apt", "3.11") == "lib"


@pytest.mark.parametrize("dist", dnf.EL)
def test_dependencies_of_an_enterprise_linux_can_be_met(dist):
    packages = catalogue.distribution(dist)
    provided = {package.name for package in packages}
    for package in pythons.el(dist):
        for relation in package.depends:
            name, *version = relation.replace("(x86-64)", "").split(" = ")
            assert name in provided
            assert not version or [p.version for p in packages if p.name == name] == version


def test_el8_has_two_pythons_as_default_streams():
    documents = {
        (one["document"], one["data"].get("name", one["data"].get("module"))): one["data"]
        for one in dnf.python_modules("el8")
    }
    assert {module: data["stream"] for (kind, module), data in documents.items() if kind == "modulemd-defaults"} == {
        "python38": "3.8",
        "python39": "3.9",
    }
    artifacts = documents["modulemd", "python38"]["artifacts"]["rpms"]
    assert "python38-0:3.8.17-2.module+el8.9.0+1418+f0d66789.x86_64" in artifacts
    assert "python38-pip-wheel-0:19.3.1-7.module+el8.9.0+1418+f0d66789.noarch" in artifacts
    assert dnf.python_modules("el9") == []


def _row(name):
    """What the collection has of the distribution that a scenario's host is."""
    row = next(row for row in DISTROS["rows"] if row.get("scenario") == name)
    like = next(
        (one for one in DISTROS["rows"] if (one["id"], one["version"]) == (row.get("like"), row["version"])), {}
    )
    return {**like, **row}


REPLICAS = [row["scenario"] for row in DISTROS["rows"] if row.get("scenario") and replicas.get(row["scenario"]).archive]


@pytest.mark.parametrize("name", REPLICAS)
def test_every_python_that_a_plan_may_name_can_be_installed(name):
    kind = replicas.get(name)
    found = catalogue.distribution if kind.family == "el" else catalogue.archive
    ours = {package.name: package.python for package in found(kind.archive)}
    for python, packages in _row(name)["pythons"].items():
        if python != OF_BASE[kind.suite] or kind.family == "el":
            assert set(packages) <= set(ours), name
            assert {ours[package] for package in packages} == {python}


@pytest.mark.parametrize("name", REPLICAS)
def test_the_image_of_a_replica_has_the_python_of_its_distribution(name):
    kind, python = replicas.get(name), _row(name)["python"]
    packages = system.packages(kind)
    expected = set() if python == "3.6" else {python}  # EL 8's platform Python is not a package: replicas/el.py
    assert {package.python for package in packages} - {""} == expected
    assert bool(expected) == ("python_program" in {file for package in packages for file in package.files})


@pytest.mark.parametrize("name", ["debian12", "rocky8"])
def test_others_have_none_beside_their_own(name):
    assert system.packages(replicas.get(name)) == []
