# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stub repositories have what plans ask for, and nothing in them needs what nobody has."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from functools import cache

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.lab import paths, reference, replicas
from tests.lab.mirror import catalogue, deb

BOARD = ["A100 SXM4 80GB"] * 8  # a board with a fabric manager
BRANCHES = ("470", "535", "550", "570", "580", "590", "595")
# What the distribution has and the lab does not imitate; Ubuntu's replicas take it from Debian.
DISTRIBUTION = {"dkms", "adduser", "libc6", "lshw"}

# Nobody has seen these there, and the tables of plans do not say where they begin.
UNSEEN = {("debian12", "470", "nvidia"), ("ubuntu2404", "470", "nvidia")}


@cache
def _stack(system, branch, source):
    """The plan, None where it is refused."""
    request = {"pytorch": "none", "driver": branch, "driver_source": source}
    return resolve({"os": system, "arch": "x86_64", "gpus": BOARD, "request": request, "ansible_core": "2.16"})["stack"]


def _plans():
    """Every plan that is not refused."""
    for name in replicas.names():
        distribution = replicas.get(name)
        system = f"{distribution.os_release.get('ID', 'debian')} {_number(distribution)}"
        for branch in BRANCHES:
            for source in ("nvidia", "distribution"):
                if (name, branch, source) in UNSEEN or not _stack(system, branch, source):
                    continue
                yield pytest.param(distribution, system, branch, source, id=f"{name}-{branch}-{source}")


def _number(distribution):
    version = distribution.os_release.get("VERSION_ID") or distribution.name.removeprefix("debian")
    return version if distribution.family == "debian" else version.partition(".")[0]


@cache
def _versions(name, kind):
    """{package: [versions]} of a repository or an archive."""
    found = {}
    for package in catalogue.packages(name) if kind == "nvidia" else catalogue.archive(name):
        epoch = f"{package.epoch}:" if package.epoch else ""
        found.setdefault(package.name, []).append(epoch + package.version)
    return found


def _wanted(stack, parts):
    for part in parts:
        found = stack[part] or {"packages": []}
        yield from found["packages"]
        yield from found.get("pinning_packages", [])


@pytest.mark.parametrize(("distribution", "system", "branch", "source"), list(_plans()))
def test_every_package_of_a_plan_is_there(distribution, system, branch, source):
    stack = _stack(system, branch, source)
    libraries = [part for part in ("cuda", "cudnn", "nccl") if stack[part]]
    driver = ["driver", "fabric_manager"]
    places = [(_versions(distribution.nvidia, "nvidia"), libraries + (driver if source == "nvidia" else []))]
    if source == "distribution" and distribution.archive:
        places.append((_versions(distribution.archive, "archive"), driver))
    for available, parts in places:
        for package in _wanted(stack, parts):
            versions = available.get(package["name"], [])
            assert any(fnmatchcase(version, package["version"] or "*") for version in versions), package


@pytest.mark.parametrize("name", reference.names())
def test_every_package_of_a_reference_system_is_there(name):
    system = reference.get(name)
    distribution = replicas.get(system.distribution)
    available = _versions(distribution.nvidia, "nvidia")
    group = system.content["gpu_nodes"]
    for host in system.hosts:
        variables = {**group["vars"], **(group["hosts"][host] or {})}
        question = {**variables["gpu_stack_host"], "profile": variables["gpu_stack_profile"]}
        stack = resolve({"ansible_core": "2.19", **question})["stack"]
        parts = [part for part in ("driver", "fabric_manager", "cuda", "cudnn", "nccl") if stack[part]]
        for package in _wanted(stack, parts):
            versions = available.get(package["name"], [])
            assert any(fnmatchcase(version, package["version"] or "*") for version in versions), package


def test_a_name_that_goes_on_is_empty_and_brings_the_next_branch():
    archive = {package.name: package for package in catalogue.archive("focal")}
    assert archive["nvidia-headless-460"].depends == ("nvidia-headless-470",)
    assert archive["nvidia-headless-470"].depends == ("nvidia-headless-535",)
    assert archive["nvidia-headless-460"].files == ()
    assert {relation for package in archive.values() if "-460" in package.name for relation in package.depends} <= set(
        archive
    )


def test_the_first_toolkits_have_no_package_that_is_common_to_all():
    names = {package.name for package in catalogue.packages("ubuntu2004")}
    assert {"cuda-toolkit-11-2", "cuda-cudart-11-2", "cuda-toolkit-11-7-config-common"} <= names
    assert "cuda-toolkit-11-2-config-common" not in names


@pytest.mark.parametrize("distribution", ["ubuntu2204", "ubuntu2404", "debian12", "rhel8", "rhel9"])
@pytest.mark.parametrize("branch", ["570", "580", "595"])
@pytest.mark.parametrize("gpus", [["B200"] * 8, ["GB200"] * 4], ids=["b200", "gb200"])
def test_what_newer_boards_need_is_there(distribution, branch, gpus):
    system = {"rhel8": "rocky 8", "rhel9": "rocky 9"}.get(distribution) or re.sub(
        r"(\d\d)(\d\d)$", r"\1.\2", distribution
    )
    system = re.sub(r"(?<=[a-z])(?=\d)", " ", system)
    request = {"pytorch": "none", "driver": branch, "driver_source": "nvidia"}
    question = {"os": system, "arch": "x86_64", "gpus": gpus, "request": request, "ansible_core": "2.16"}
    stack = resolve(question)["stack"]
    planned = [*_wanted(stack, ["fabric_manager"]), *stack.get("imex", {"packages": []})["packages"]]
    available = _versions(distribution, "nvidia")
    own = [package for package in planned if package["name"] != "infiniband-diags"]
    assert {package["name"].split("-")[0] for package in own} <= {"nvlsm", "nvidia"} and own
    for package in own:
        assert any(fnmatchcase(version, package["version"] or "*") for version in available.get(package["name"], [])), (
            package
        )


@pytest.mark.parametrize("dist", ["el8", "el9", "el10"])
def test_enterprise_linux_has_the_rdma_stack(dist):
    """What role rdma installs on a host whose simulated machine has adapters."""
    rows = yaml.safe_load((paths.CHECKOUT / "roles" / "rdma" / "vars" / "el.yml").read_text(encoding="utf-8"))
    assert set(rows["__rdma_packages"]) <= {package.name for package in catalogue.distribution(dist)}


def _names(relation):
    """Package names of a relation with alternatives; nothing for a rich one."""
    if relation.startswith("("):
        return []
    return [re.split(r"[ (<>=]", part.strip(), maxsplit=1)[0] for part in relation.split("|")]


@pytest.mark.parametrize("slug", catalogue.repositories())
def test_every_dependency_can_be_met(slug):
    packages = catalogue.packages(slug)
    if "dist" in catalogue.repositories()[slug]:
        packages = packages + catalogue.distribution(catalogue.repositories()[slug]["dist"])
    provided = {package.name for package in packages} | DISTRIBUTION
    provided |= {name for package in packages for relation in package.provides for name in _names(relation)}
    for package in packages:
        for relation in package.depends:
            names = [name.removesuffix("(x86-64)") for name in _names(relation)]
            assert not names or set(names) & provided, (package.name, package.version, relation)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt")
@pytest.mark.parametrize(
    ("distribution", "branch"),
    [
        (distribution, branch)
        for distribution in ("ubuntu2004", "ubuntu2204", "ubuntu2404", "debian12")
        for branch in ("535", "550", "580")
        if (distribution, branch) != ("ubuntu2004", "580")  # NVIDIA's repository for it ends before
    ]
    + [("ubuntu2004", "460")],
)
def test_apt_installs_a_plan(distribution, branch, tmp_path):
    """The real solver, over the index alone, with the pins of the hold: without them names without a branch go to the newest."""
    kind = replicas.get(distribution)
    stack = _stack(f"{kind.os_release.get('ID', 'debian')} {_number(kind)}", branch, "nvidia")
    driver = stack["driver"]
    pin = f"Package: {' '.join(driver['held'])}\nPin: version {driver['version']}-*\nPin-Priority: 1001\n"
    # As in Ubuntu's archive, where 460 goes on as an empty name for 470, and 470 for 535.
    beside = catalogue.archive(kind.archive) if branch == "460" else []
    simulated = Apt(tmp_path, [*catalogue.packages(kind.nvidia), *beside], pin)
    chosen = [*_wanted(stack, ["driver", "fabric_manager", "cuda", "cudnn", "nccl"])]
    installed = simulated.install(*(f"{p['name']}={p['version']}" if p["version"] else p["name"] for p in chosen))
    assert {package["name"] for package in chosen} <= set(installed)
    assert not [name for name in installed if re.search(r"-\d{3}(-|$)", name) and f"-{branch}" not in name]


class Apt:
    """apt with directories of its own."""

    def __init__(self, home, packages, preferences):
        self.home = home
        for folder in ("etc/preferences.d", "state/lists/partial", "cache/archives/partial", "repository"):
            (home / folder).mkdir(parents=True)
        (home / "etc" / "preferences").write_text(preferences)
        index = "\n".join(f"{deb.control(p)}Filename: ./x.deb\nSize: 1\nSHA256: {'0' * 64}\n" for p in packages)
        (home / "repository" / "Packages").write_text(index)
        (home / "etc" / "sources.list").write_text(f"deb [trusted=yes] file:{home}/repository ./\n")
        status = "".join(
            f"Package: {name}\nStatus: install ok installed\nVersion: 3.2\nArchitecture: all\nDescription: x\n\n"
            for name in DISTRIBUTION
        )
        (home / "status").write_text(status)
        self._run("update")

    def _run(self, *argv):
        options = {
            "Dir": self.home, "Dir::Etc": self.home / "etc", "Dir::State": self.home / "state",
            "Dir::Cache": self.home / "cache", "Dir::State::status": self.home / "status",
            "Dir::Etc::sourcelist": self.home / "etc/sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "APT::Architecture": "amd64", "APT::Architectures": "amd64", "APT::Sandbox::User": "root", "Dir::Log": self.home,
        }  # fmt: skip
        flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        return subprocess.run(["apt-get", *flags, *argv], capture_output=True, text=True, check=False)

    def install(self, *packages):
        done = self._run("-s", "--no-install-recommends", "-y", "install", *packages)
        assert done.returncode == 0, done.stdout + done.stderr
        return re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)
