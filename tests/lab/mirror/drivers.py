# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of drivers."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Package, expand, happened, numbers, table, version_of


def _flavours(entry: dict, branch: int) -> list[str]:
    if "{f}" not in entry["name"]:
        return [""]
    changes = table("drivers")["changes"]
    return [
        *([""] if branch < changes["open_only"] else []),
        *(["-open"] if branch >= changes["open_modules"] else []),
    ]


def ubuntu_values(upstream: str, suffix: str, version: str, meta: str) -> dict:
    branch = numbers(upstream)[0]
    of_branch = not suffix or (suffix.count("-") == 1 and branch >= table("drivers")["changes"]["firmware_per_branch"])
    firmware = f"nvidia-firmware{suffix}" + ("" if of_branch else f"-{upstream}")
    return {"s": suffix, "v": version, "u": upstream, "m": meta, "b": branch, "firmware": firmware}


def ubuntu_set(values: dict, changed: int) -> Iterator[Package]:
    """Return the packages of one driver; ``changed`` is the branch whose changes of packaging count (Ubuntu has none: 0)."""
    for entry in table("driver_ubuntu")["packages"]:
        for flavour in _flavours(entry, values["b"]) if happened(entry, changed) else ():
            yield expand(entry, {**values, "f": flavour}, values["v"], "apt")


def ubuntu_driver(driver: dict, _row: dict) -> Iterator[Package]:
    upstream = version_of(driver)
    suffix = "" if happened({"when": "no_suffix_ubuntu"}, numbers(upstream)[0]) else f"-{numbers(upstream)[0]}"
    version, meta = (f"{upstream}-{revision}" for revision in driver["ubuntu"])
    values = ubuntu_values(upstream, suffix, version, meta)
    yield from ubuntu_set(values, values["b"])
    for entry in table("driver_ubuntu")["nvidia"]:
        if happened(entry, values["b"]):
            yield expand(entry, values, entry.get("version", "{v}").format(**values), "apt")


def transitional(row: dict) -> Iterator[Package]:
    """Empty packages of one branch, each of which brings the same of another."""
    version = version_of(row)
    values = {"s": row["suffix"], "f": "", "firmware": ""}
    for entry in table("driver_ubuntu")["packages"]:
        if happened(entry, 0) and entry["name"] != "{firmware}":
            name = entry["name"].format(**values)
            other = name.replace(row["suffix"], row["to"])
            yield Package(name, version, entry.get("architecture", "amd64"), depends=(other,))


def debian_driver(driver: dict, _row: dict) -> Iterator[Package]:
    upstream = version_of(driver)
    values = {"u": upstream, "v": f"{upstream}-1", "b": numbers(upstream)[0]}
    for entry in table("driver_debian")["packages"]:
        if happened(entry, values["b"]):
            yield expand(entry, values, values["v"], "apt")


def el_driver(driver: dict, row: dict) -> Iterator[Package]:
    upstream, data = version_of(driver), table("driver_el")
    values = {"u": upstream, "v": f"{upstream}-1.{row['dist']}", "b": numbers(upstream)[0], "epoch": data["epoch"]}
    for entry in data["packages"]:
        if happened(entry, values["b"]):
            version = f"{upstream}-{entry['release']}" if "release" in entry else values["v"]
            yield expand(entry, values, version, "dnf")
    if values["b"] in data["precompiled"]["branches"]:
        for kernel in table("distribution_el")["kernels"][row["dist"]][:-1]:
            plain, dummy, dist = kernel.partition(".el")
            kernel_values = {**values, "k": plain, "kd": kernel}
            version = f"{upstream}-{data['precompiled']['release']}.el{dist}"
            yield expand(data["precompiled"]["package"], kernel_values, version, "dnf")


def precompiled(values: dict, kernels: list[str]) -> Iterator[Package]:
    for kernel in kernels:
        for entry in table("driver_ubuntu")["archive"]["precompiled"]:
            for flavour in _flavours(entry, values["b"]):
                filled = {**values, "f": flavour, "k": kernel}
                yield expand(entry, filled, f"{kernel.removesuffix('-generic')}.1+{values['u']}", "apt")
