# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the toolkit, of cuDNN, NCCL and the NVLink subnet manager."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Package, expand, numbers, table, version_of


def _in_range(row: dict, cuda: str) -> bool:
    low, high = map(numbers, row["cuda"])
    return low <= numbers(cuda)[:2] <= high


def cuda(row: dict) -> Iterator[Package]:
    data, dnf = table("cuda"), row["manager"] == "dnf"
    releases = [release for release in data["rows"] if _in_range(row, release["release"])]
    newest = {tuple(numbers(release["release"])[:2]): release["release"] for release in releases}
    for release in releases:
        number, components = release["release"], release["components"]
        major, minor = numbers(number)[:2]
        driver = release.get("driver")
        values = {"x": f"{major}-{minor}", "major": major, "r": number, "d": driver}
        entries = data["packages"] + (data["unversioned"] if number in newest.values() else [])
        later = {entry["name"] for entry in entries if numbers(entry.get("since", "0")) > [major, minor]}
        for entry in entries:
            if entry["name"] in later:
                continue
            entry = {**entry, "depends": [d for d in entry.get("depends", ()) if d not in later]}  # noqa: PLW2901
            if "{d}" in str(entry) and not driver:
                entry = {**entry, "depends": [d for d in entry.get("depends", ()) if "{d}" not in d]}  # noqa: PLW2901
                if "version" in entry:
                    continue
            version = entry["version"].format(**values) if "version" in entry else number
            if "component" in entry:
                version = components.get(entry["component"]) or components.get("cudart") or number
            package = expand(entry, values, f"{version}-1", row["manager"])
            yield _as_rpm(package) if dnf else package


def _as_rpm(package: Package) -> Package:
    """-dev is -devel, and (>= 1) is >= 1 there."""
    name = package.name.replace("-dev-", "-devel-")
    depends = (d.replace("-dev-", "-devel-").replace("(", "").replace(")", "") for d in package.depends)
    return Package(**{**package.__dict__, "name": name, "depends": tuple(depends)})


def libraries(row: dict) -> Iterator[Package]:
    data, dnf = table("libraries"), row["manager"] == "dnf"
    arch, dev = ("x86_64", "devel") if dnf else ("amd64", "dev")
    for entry in data["cudnn"]:
        version, cuda = version_of(entry), entry["cuda"]
        if "." in cuda:
            if not _in_range(row, cuda):
                continue
            version, names = f"{version}-1{'.' if dnf else '+'}cuda{cuda}", ("libcudnn8", f"libcudnn8-{dev}")
        else:
            if not numbers(row["cuda"][0])[0] <= int(cuda) <= numbers(row["cuda"][1])[0]:
                continue
            version, names = f"{version}-1", (f"libcudnn9-cuda-{cuda}", f"libcudnn9-{dev}-cuda-{cuda}")
        yield Package(names[0], version, arch, files=("cudnn",))
        yield Package(names[1], version, arch, depends=(_exactly(names[0], version, dnf),), files=("cudnn_dev",))
    for entry in data["nccl"]:
        if _in_range(row, entry["cuda"]):
            version, name = f"{version_of(entry)}-1+cuda{entry['cuda']}", "libnccl" if dnf else "libnccl2"
            yield Package(name, version, arch, files=("nccl",))
            yield Package(f"libnccl-{dev}", version, arch, depends=(_exactly(name, version, dnf),), files=("nccl_dev",))
    for entry in data["nvlsm"]["rows"] if _in_range(row, data["nvlsm"]["cuda"]) else ():
        yield Package("nvlsm", f"{version_of(entry)}-1", arch, files=("nvlsm",))


def _exactly(name: str, version: str, dnf: bool) -> str:
    return f"{name} = {version}" if dnf else f"{name} (= {version})"
