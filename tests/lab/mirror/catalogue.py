# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a repository has: the tables of data/ expanded."""

from __future__ import annotations

from . import container_toolkit, dcgm, drivers, pythons, toolkits
from .model import Package, expand, numbers, table, version_of


def repositories() -> dict[str, dict]:
    """NVIDIA's repositories by slug."""
    return table("repositories")["repositories"]


def packages(slug: str) -> list[Package]:
    """Return all of one of NVIDIA's repositories; a name and version that several rows bring (config-common) counts once."""
    row = repositories()[slug]
    of_driver = {"ubuntu": drivers.ubuntu_driver, "debian": drivers.debian_driver, "el": drivers.el_driver}[
        row["drivers"]
    ]
    found = [
        package
        for driver in table("drivers")["rows"]
        if row["driver"][0] <= numbers(version_of(driver))[0] <= row["driver"][1]
        for package in of_driver(driver, row)
    ]
    found += [*toolkits.cuda(row), *toolkits.libraries(row), *dcgm.packages(slug, row["manager"])]
    found += container_toolkit.packages(slug, row["manager"])
    if row["manager"] == "dnf":
        found += [
            expand(other, {}, other["version"] + "." + row["dist"], "dnf") for other in table("driver_el")["others"]
        ]
    return list({(p.name, p.epoch, p.version): p for p in found}.values())


def archive(suite: str) -> list[Package]:
    """Return the packages of the lab's stand-in for Ubuntu's archive."""
    data, found = table("driver_ubuntu"), []
    kernels = [row for row in data["archive"]["kernels"] if row["suite"] == suite]
    for row in data["archive"]["rows"]:
        if row["suite"] == suite:
            version = version_of(row)
            values = drivers.ubuntu_values(version.partition("-")[0], row["suffix"], version, version)
            found += drivers.ubuntu_set(values, 0)
            found.append(expand(data["archive"]["fabric_manager"], values, version, "apt"))
            found += drivers.precompiled(values, [row["kernel"] for row in kernels if "meta" not in row])
    for row in data["archive"]["transitional"]:
        if row["suite"] == suite:
            found += drivers.transitional(row)
    for kernel in kernels:
        found += _ubuntu_kernel(kernel)
    found += pythons.ubuntu(suite)
    return list({(p.name, p.version): p for p in found}.values())


def _ubuntu_kernel(row: dict) -> list[Package]:
    """Return a kernel, and the metapackages that follow its series; what Ubuntu calls hwe has metapackages of its own."""
    kernel, meta = row["kernel"], row.get("meta", "generic")
    abi = kernel.removesuffix("-generic")
    version = f"{abi}.{abi.rpartition('-')[2]}" + ("~22.04.1" if meta != "generic" else "")
    newest = version if meta != "generic" else version.replace("-", ".", 1)
    return [
        Package(f"linux-modules-{kernel}", version, files=("kernel_modules",)),
        Package(f"linux-modules-extra-{kernel}", version, depends=(f"linux-modules-{kernel}",)),
        Package(f"linux-image-{kernel}", version, depends=(f"linux-modules-{kernel}",), files=("kernel",)),
        Package(f"linux-headers-{kernel}", version, files=("headers",)),
        Package(f"linux-image-{meta}", newest, depends=(f"linux-image-{kernel}", f"linux-modules-extra-{kernel}")),
        Package(f"linux-headers-{meta}", newest, depends=(f"linux-headers-{kernel}",)),
        Package(
            f"linux-{meta}", newest, depends=(f"linux-image-{meta} (= {newest})", f"linux-headers-{meta} (= {newest})")
        ),
    ]


def distribution(dist: str) -> list[Package]:
    """Return the packages of the lab's stand-in for an Enterprise Linux and EPEL."""
    data, found = table("distribution_el"), []
    for entry in _of(dist, data["packages"]):
        epoch, dummy, version = str(entry.get(dist, entry["version"])).rpartition(":")
        values = {"v": f"{version}.{dist}"}
        found.append(expand({**entry, "epoch": int(epoch or 0)}, values, values["v"], "dnf"))
    for kernel in data["kernels"][dist]:
        values = {"v": kernel, "r": f"{kernel}.x86_64"}
        found += [expand(entry, values, kernel, "dnf") for entry in _of(dist, data["kernel_packages"])]
    return [*found, *pythons.el(dist)]


def _of(dist: str, entries: list[dict]) -> list[dict]:
    return [entry for entry in entries if dist in entry.get("dists", [dist])]
