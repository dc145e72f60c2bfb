# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stack names exists: every package and version against what was published (published.yml)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

PUBLISHED = yaml.safe_load((Path(__file__).parent / "published.yml").read_text(encoding="utf-8"))
TABLES = load()
SYSTEMS = {
    "ubuntu2004": "ubuntu 20.04", "ubuntu2204": "ubuntu 22.04", "ubuntu2404": "ubuntu 24.04", "rhel8": "rocky 8", "rhel9": "rocky 9",
}  # fmt: skip
SUPPORTED = (*SYSTEMS.values(), "almalinux 8", "centos 8", "almalinux 9", "rhel 9", "debian 12", "debian 13")
BOARD = ["A100 SXM4 80GB"] * 8


def stack(os, arch="x86_64", **request):
    """A stack without frameworks, for a board with a fabric manager."""
    request = {"pytorch": "none", **request}
    answer = resolve({"os": os, "arch": arch, "gpus": BOARD, "request": request, "ansible_core": "2.16"})
    assert answer["stack"], [one["reason"] for one in answer["conflicts"]]
    return answer["stack"]


def packages(part):
    return {one["name"]: one["version"] for one in part["packages"]}


def drivers(found):
    """Everything that comes with the driver, by name."""
    return {**packages(found["driver"]), **packages(found["fabric_manager"])}


def agree(planned, published):
    """No planned version passes by what was published of that package; the number of versions compared."""
    for name, versions in published.items():
        for version in versions:
            assert fnmatchcase(version, planned[name] or "*"), (name, version, planned[name])
    return sum(map(len, published.values()))


@pytest.mark.parametrize(
    ("branch", "flavour"),
    [
        (branch, flavour)
        for branch in PUBLISHED["ubuntu"]
        for flavour in TABLES.branch(branch)["kernel_modules"]
    ],
)  # fmt: skip
def test_nvidias_packages_for_ubuntu(branch, flavour):
    published = PUBLISHED["ubuntu"][branch]
    seen = {version.partition("-")[0] for name, version in published.items() if version and "-firmware-" not in name}
    for number in seen:
        found = stack("ubuntu 22.04", driver=number, driver_source="nvidia", kernel_modules=flavour)
        planned = drivers(found)
        names = set(planned) - ({f"nvidia-fabricmanager-{branch}"} - set(published))
        assert names <= set(published)
        agree(planned, {name: [published[name]] for name in names if str(published[name]).startswith(f"{number}-")})


@pytest.mark.parametrize("pinning", ["580", "590", "595"])
def test_pinning_packages_for_ubuntu(pinning):
    found = stack("ubuntu 22.04", driver=pinning, driver_source="nvidia")["driver"]
    name = found["pinning_packages"][0]["name"]
    assert name.replace(found["version"], "{version}") in PUBLISHED["ubuntu"][int(pinning)]


@pytest.mark.parametrize("dist", ["el8", "el9"])
def test_nvidias_packages_for_el(dist):
    published = PUBLISHED["el"][dist]
    numbers = {v.partition(":")[2].partition("-")[0] for vs in published.values() for v in vs if ":" in v}
    compared = 0
    for number in sorted(numbers):
        planned = packages(stack(f"rocky {dist[2:]}", driver=number, kernel_modules="auto")["driver"])
        seen = {name: [v for v in vs if v.startswith(f"3:{number}-")] for name, vs in published.items()}
        compared += agree(planned, {name: versions for name, versions in seen.items() if name in planned})
    assert compared


@pytest.mark.parametrize("dist", ["el8", "el9"])
def test_names_for_el_were_seen_in_a_full_listing(dist):
    number = {"el8": "535.183.06", "el9": "580.178.04"}[dist]
    flavour = {"el8": "proprietary", "el9": "open"}[dist]
    planned = packages(stack(f"rocky {dist[2:]}", driver=number, kernel_modules=flavour)["driver"])
    listed = {name for name, versions in PUBLISHED["el"][dist].items() if any(number in one for one in versions)}
    assert set(planned) <= listed


@pytest.mark.parametrize(("name", "versions"), PUBLISHED["el_fabric_manager"].items())
def test_fabric_manager_for_el(name, versions):
    numbers = {version: version.partition("-")[0] for version in versions}
    planned = {version: number for version, number in numbers.items() if int(number[:3]) >= 535}
    assert planned
    for version, number in planned.items():
        agree(packages(stack("rocky 9", driver=number)["fabric_manager"]), {name: [version]})


@pytest.mark.parametrize("branch", ["580", "595"])
@pytest.mark.parametrize("flavour", ["open", "proprietary"])
def test_nvidias_packages_for_debian(branch, flavour):
    found = stack("debian 12", driver=branch, kernel_modules=flavour)
    assert set(drivers(found)) <= set(PUBLISHED["debian"])
    old = drivers(stack("debian 12", driver="580.65.06", kernel_modules=flavour))
    agree(old, {name: [v for v in PUBLISHED["debian"][name] if v.startswith("580.65")] for name in old})


@pytest.mark.parametrize(
    ("version", "branch"),
    [(row["version"], row["branch"]) for row in TABLES.rows("archives") if row["id"] == "ubuntu"],
)
def test_ubuntus_own_packages(version, branch):
    row = TABLES.find("archives", id="ubuntu", version=version, branch=branch)
    published = PUBLISHED["ubuntu_archive"][version][f"{branch}-server"]
    assert published["version"] == row["suites"][-1]["revision"]
    assert not published["transitional"]
    for flavour in row["suites"][-1]["kernel_modules"]:
        found = stack(f"ubuntu {version}", driver=str(branch), driver_source="distribution", kernel_modules=flavour)
        planned = packages(found["driver"])
        assert set(planned) <= set(PUBLISHED["ubuntu_archive_names"][f"{branch}-server"])
        agree(planned, {name: [published["version"]] for name in planned})


@pytest.mark.parametrize("row", TABLES.subjects["archives"]["transitional"], ids=lambda row: f"{row['version']}-{row['from']}")  # fmt: skip
def test_a_transitional_branch_is_no_row_and_its_successor_is(row):
    assert TABLES.find("archives", id=row["id"], version=row["version"], branch=row["from"]) is None
    assert TABLES.find("archives", id=row["id"], version=row["version"], branch=row["to"])


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_debians_own_packages(suite):
    rows = [row for row in TABLES.rows("archives") if suite in {one["suite"] for one in row["suites"]}]
    published = PUBLISHED["debian_archive"][suite]
    for row in rows:
        one = next(one for one in row["suites"] if one["suite"] == suite)
        for flavour in one["kernel_modules"]:
            names = [name.format(**row) for name in row["packages"][flavour] + row["packages"]["common"]]
            assert {name: published[name] for name in names} == dict.fromkeys(names, one["revision"])
        assert {name: published[name] for name in one["pinned"]} == one["pinned"]


@pytest.mark.parametrize("release", PUBLISHED["cuda"])
def test_toolkits(release):
    for slug, published in PUBLISHED["cuda"][release].items():
        os = SYSTEMS[slug]
        row = TABLES.find("cuda", version=release.rpartition(".")[0])
        if release not in row["updates"]:
            continue
        newest = "580" if os != "ubuntu 20.04" else "575"
        planned = packages(stack(os, driver=newest, cuda=release)["cuda"])
        cudart = published.get(f"cuda-cudart-{row['version'].replace('.', '-')}")
        if cudart:
            assert {v for name, v in planned.items() if name.endswith("-config-common")} == {cudart}
        agree(planned, {name: [version] for name, version in published.items() if name in planned})


@pytest.mark.parametrize("slug", SYSTEMS)
@pytest.mark.parametrize("component", ["cudnn", "nccl"])
def test_libraries(component, slug):
    published = PUBLISHED[component][slug]
    for row in TABLES.rows(component):
        if slug not in row["repositories"]:
            continue
        cuda = row["cuda"] if "." in row["cuda"] else {"12": "12.8", "13": "13.0"}[row["cuda"]]
        newest = "580" if slug != "ubuntu2004" else "575"
        found = stack(SYSTEMS[slug], driver=newest, cuda=cuda, **{component: row["version"]})
        for name, version in packages(found[component]).items():
            if found[component]["cuda"] == row["cuda"]:
                assert version in published[name]


@pytest.mark.parametrize("os", SUPPORTED)
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_every_supported_distribution_has_a_whole_driver(os, arch):
    for row in TABLES.rows("drivers"):
        if row["branch"] < 535 or row["status"] == "unknown":
            continue
        request = {"driver": str(row["branch"]), "driver_source": "nvidia", "pytorch": "none"}
        answer = resolve({"os": os, "arch": arch, "gpus": BOARD, "request": request, "ansible_core": "2.16"})
        if answer["stack"] is None:
            assert "NVIDIA's repository for" in answer["conflicts"][0]["reason"]
            continue
        found, repository = answer["stack"]["driver"], answer["stack"]["repository"]
        assert found["packages"]
        assert repository["url"].endswith({"x86_64": "/x86_64/", "aarch64": "/sbsa/"}[arch])
        assert len(repository["key_fingerprint"]) == 40
        assert bool(found.get("module_stream")) == (repository["package_manager"] == "dnf")
        assert answer["stack"]["fabric_manager"]["packages"][0]["version"]
        everything = drivers(answer["stack"])
        unheld = [name for name in everything if not any(fnmatchcase(name, one) for one in found["held"])]
        assert not unheld
        for name in ("nvidia-container-toolkit", "libnvidia-container1", "nvidia-cuda-toolkit", "cuda-toolkit-12-4"):
            assert not any(fnmatchcase(name, one) for one in found["held"])


@pytest.mark.parametrize(
    ("branch", "flavour", "options"),
    [
        ("550", "open", ["-m=kernel-open"]),
        ("550", "proprietary", []),
        ("570", "proprietary", ["--kernel-module-type=proprietary"]),
        ("580", "open", ["--kernel-module-type=open"]),
    ],
)
def test_how_the_installer_is_told_the_kernel_modules(branch, flavour, options):
    found = stack("ubuntu 22.04", driver=branch, driver_source="runfile", kernel_modules=flavour)["driver"]
    assert found["installer_options"] == options
    assert [package["name"] for package in found["packages"]] == ["dkms"]


def test_packages_need_no_options_of_an_installer():
    assert stack("ubuntu 22.04", driver="550", driver_source="nvidia")["driver"]["installer_options"] == []


def test_what_precompiled_modules_stand_in_for():
    ubuntu = stack("ubuntu 22.04", driver="580", driver_source="distribution")["driver"]["precompiled"]
    assert ubuntu["replaces"] == ["nvidia-dkms-580-server-open", "nvidia-headless-580-server-open"]
    el = stack("almalinux 9", driver="550", kernel_modules="proprietary")["driver"]["precompiled"]
    assert el == {"packages": [], "module_stream": "550", "replaces": ["kmod-nvidia-latest-dkms"]}
