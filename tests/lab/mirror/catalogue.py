# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a repository has: the tables of data/ expanded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

DATA = Path(__file__).with_name("data")
RELATIONS = ("depends", "provides", "conflicts", "replaces", "obsoletes")


@dataclass(frozen=True)
class Package:
    """One stub. ``version`` as the package manager writes it (with release, without epoch); ``files`` see payload.py."""

    name: str
    version: str
    architecture: str = "amd64"
    epoch: int = 0
    depends: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    obsoletes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def upstream(self) -> str:
        return self.version.rpartition("-")[0] or self.version


@cache
def table(name: str) -> dict:
    return yaml.safe_load((DATA / f"{name}.yml").read_text(encoding="utf-8"))


def repositories() -> dict[str, dict]:
    """NVIDIA's repositories by slug."""
    return table("repositories")["repositories"]


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _version(row: dict) -> str:
    """YAML reads 580.142 as a number."""
    return str(row["version"])


def packages(slug: str) -> list[Package]:
    """All of one of NVIDIA's repositories; a name and version that several rows bring (config-common) counts once."""
    row = repositories()[slug]
    drivers = {"ubuntu": _ubuntu_driver, "debian": _debian_driver, "el": _el_driver}[row["drivers"]]
    found = [
        package
        for driver in table("drivers")["rows"]
        if row["driver"][0] <= numbers(_version(driver))[0] <= row["driver"][1]
        for package in drivers(driver, row)
    ]
    found += [*_cuda(row), *_libraries(row)]
    if row["manager"] == "dnf":
        found += [
            _package(other, {}, other["version"] + "." + row["dist"], "dnf") for other in table("driver_el")["others"]
        ]
    return list({(p.name, p.epoch, p.version): p for p in found}.values())


def _happened(entry: dict, branch: int) -> bool:
    """Whether a package exists in a branch: ``when`` (with "!": not yet) and ``unless`` name a change of drivers.yml."""
    changes = table("drivers")["changes"]
    when, unless = entry.get("when", ""), entry.get("unless")
    if when and (branch >= changes[when.lstrip("!")]) == when.startswith("!"):
        return False
    return not unless or branch < changes[unless]


def _package(entry: dict, values: dict, version: str, manager: str) -> Package:
    """A row with its placeholders filled; ``owns`` is a virtual name that only one package may have."""

    def filled(key: str) -> list[str]:
        return [text.format(**values) for text in entry.get(key, ())]

    architecture = entry.get("architecture", "amd64" if manager == "apt" else "x86_64")
    name, owned = entry["name"].format(**values), filled("owns")
    return Package(
        name,
        version,
        {"all": "noarch"}.get(architecture, architecture) if manager == "dnf" else architecture,
        entry.get("epoch", values.get("epoch", 0)),
        tuple(filled("depends") + filled("requires")),
        tuple(filled("provides") + [o for o in owned if o != name]),
        tuple(filled("conflicts") + owned),
        tuple(filled("replaces") + owned),
        tuple(filled("obsoletes")),
        tuple(entry.get("files", ())),
    )


def _flavours(entry: dict, branch: int) -> list[str]:
    if "{f}" not in entry["name"]:
        return [""]
    changes = table("drivers")["changes"]
    return [
        *([""] if branch < changes["open_only"] else []),
        *(["-open"] if branch >= changes["open_modules"] else []),
    ]


def _ubuntu_values(upstream: str, suffix: str, version: str, meta: str) -> dict:
    branch = numbers(upstream)[0]
    of_branch = not suffix or (suffix.count("-") == 1 and branch >= table("drivers")["changes"]["firmware_per_branch"])
    firmware = f"nvidia-firmware{suffix}" + ("" if of_branch else f"-{upstream}")
    return {"s": suffix, "v": version, "u": upstream, "m": meta, "b": branch, "firmware": firmware}


def _ubuntu_set(values: dict, changed: int) -> Iterator[Package]:
    """The packages of one driver; ``changed`` is the branch whose changes of packaging count (Ubuntu has none: 0)."""
    for entry in table("driver_ubuntu")["packages"]:
        for flavour in _flavours(entry, values["b"]) if _happened(entry, changed) else ():
            yield _package(entry, {**values, "f": flavour}, values["v"], "apt")


def _ubuntu_driver(driver: dict, _row: dict) -> Iterator[Package]:
    upstream = _version(driver)
    suffix = "" if _happened({"when": "no_suffix_ubuntu"}, numbers(upstream)[0]) else f"-{numbers(upstream)[0]}"
    version, meta = (f"{upstream}-{revision}" for revision in driver["ubuntu"])
    values = _ubuntu_values(upstream, suffix, version, meta)
    yield from _ubuntu_set(values, values["b"])
    for entry in table("driver_ubuntu")["nvidia"]:
        if _happened(entry, values["b"]):
            yield _package(entry, values, entry.get("version", "{v}").format(**values), "apt")


def _debian_driver(driver: dict, _row: dict) -> Iterator[Package]:
    upstream = _version(driver)
    values = {"u": upstream, "v": f"{upstream}-1", "b": numbers(upstream)[0]}
    for entry in table("driver_debian")["packages"]:
        if _happened(entry, values["b"]):
            yield _package(entry, values, values["v"], "apt")


def _el_driver(driver: dict, row: dict) -> Iterator[Package]:
    upstream, data = _version(driver), table("driver_el")
    values = {"u": upstream, "v": f"{upstream}-1.{row['dist']}", "b": numbers(upstream)[0], "epoch": data["epoch"]}
    for entry in data["packages"]:
        if _happened(entry, values["b"]):
            version = f"{upstream}-{entry['release']}" if "release" in entry else values["v"]
            yield _package(entry, values, version, "dnf")
    if values["b"] in data["precompiled"]["branches"]:
        for kernel in table("distribution_el")["kernels"][row["dist"]][:-1]:
            plain, _, dist = kernel.partition(".el")
            kernel_values = {**values, "k": plain, "kd": kernel}
            version = f"{upstream}-{data['precompiled']['release']}.el{dist}"
            yield _package(data["precompiled"]["package"], kernel_values, version, "dnf")


def archive(suite: str) -> list[Package]:
    """What the lab's stand-in for Ubuntu's archive has."""
    data, found = table("driver_ubuntu"), []
    kernels = [row["kernel"] for row in data["archive"]["kernels"] if row["suite"] == suite]
    for row in data["archive"]["rows"]:
        if row["suite"] == suite:
            version = _version(row)
            values = _ubuntu_values(version.partition("-")[0], row["suffix"], version, version)
            found += _ubuntu_set(values, 0)
            found.append(_package(data["archive"]["fabric_manager"], values, version, "apt"))
            found += _precompiled(values, kernels)
    for kernel in kernels:
        found += _ubuntu_kernel(kernel)
    return list({(p.name, p.version): p for p in found}.values())


def _precompiled(values: dict, kernels: list[str]) -> Iterator[Package]:
    for kernel in kernels:
        for entry in table("driver_ubuntu")["archive"]["precompiled"]:
            for flavour in _flavours(entry, values["b"]):
                filled = {**values, "f": flavour, "k": kernel}
                yield _package(entry, filled, f"{kernel.removesuffix('-generic')}.1+{values['u']}", "apt")


def _ubuntu_kernel(kernel: str) -> list[Package]:
    abi = kernel.removesuffix("-generic")
    version = f"{abi.replace('-', '.')}.{abi.rpartition('-')[2]}"
    return [
        Package(f"linux-image-{kernel}", f"{abi}.{abi.rpartition('-')[2]}", files=("kernel",)),
        Package(f"linux-headers-{kernel}", f"{abi}.{abi.rpartition('-')[2]}", files=("headers",)),
        Package("linux-image-generic", version, depends=(f"linux-image-{kernel}",)),
        Package("linux-headers-generic", version, depends=(f"linux-headers-{kernel}",)),
    ]


def distribution(dist: str) -> list[Package]:
    """What the lab's stand-in for an Enterprise Linux and EPEL has."""
    data, found = table("distribution_el"), []
    for entry in data["packages"]:
        epoch, _, version = str(entry.get("el9", entry["version"]) if dist == "el9" else entry["version"]).rpartition(
            ":"
        )
        found.append(_package({**entry, "epoch": int(epoch or 0)}, {}, f"{version}.{dist}", "dnf"))
    for kernel in data["kernels"][dist]:
        found += [
            Package("kernel", kernel, "x86_64", depends=(f"kernel-core = {kernel}",)),
            Package("kernel-core", kernel, "x86_64", files=("kernel",)),
            Package(
                "kernel-devel",
                kernel,
                "x86_64",
                provides=(f"kernel-devel-uname-r = {kernel}.x86_64",),
                files=("headers",),
            ),
            Package("kernel-headers", kernel, "x86_64"),
        ]
    return found


def _in_range(row: dict, cuda: str) -> bool:
    low, high = map(numbers, row["cuda"])
    return low <= numbers(cuda)[:2] <= high


def _cuda(row: dict) -> Iterator[Package]:
    data, dnf = table("cuda"), row["manager"] == "dnf"
    releases = [release for release in data["rows"] if _in_range(row, release["release"])]
    newest = {tuple(numbers(release["release"])[:2]): release["release"] for release in releases}
    for release in releases:
        number, components = release["release"], release["components"]
        major, minor = numbers(number)[:2]
        driver = release.get("driver")
        values = {"x": f"{major}-{minor}", "major": major, "r": number, "d": driver}
        entries = data["packages"] + (data["unversioned"] if number in newest.values() else [])
        for entry in entries:
            if "{d}" in str(entry) and not driver:
                entry = {**entry, "depends": [d for d in entry.get("depends", ()) if "{d}" not in d]}  # noqa: PLW2901
                if "version" in entry:
                    continue
            version = entry["version"].format(**values) if "version" in entry else number
            if "component" in entry:
                version = components.get(entry["component"]) or components.get("cudart") or number
            package = _package(entry, values, f"{version}-1", row["manager"])
            yield _as_rpm(package) if dnf else package


def _as_rpm(package: Package) -> Package:
    """-dev is -devel, and (>= 1) is >= 1 there."""
    name = package.name.replace("-dev-", "-devel-")
    depends = (d.replace("-dev-", "-devel-").replace("(", "").replace(")", "") for d in package.depends)
    return Package(**{**package.__dict__, "name": name, "depends": tuple(depends)})


def _libraries(row: dict) -> Iterator[Package]:
    data, dnf = table("libraries"), row["manager"] == "dnf"
    arch, dev = ("x86_64", "devel") if dnf else ("amd64", "dev")
    for entry in data["cudnn"]:
        version, cuda = _version(entry), entry["cuda"]
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
            version, name = f"{_version(entry)}-1+cuda{entry['cuda']}", "libnccl" if dnf else "libnccl2"
            yield Package(name, version, arch, files=("nccl",))
            yield Package(f"libnccl-{dev}", version, arch, depends=(_exactly(name, version, dnf),), files=("nccl_dev",))


def _exactly(name: str, version: str, dnf: bool) -> str:
    return f"{name} = {version}" if dnf else f"{name} (= {version})"
