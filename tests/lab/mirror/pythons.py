# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons of the distributions as packages, and the module streams that some of them are in."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Package, expand, table


def _values(row: dict) -> dict:
    return {
        "n": row.get("name"),
        "p": row["python"],
        "d": row["python"].replace(".", ""),
        "v": row["version"],
        "pip": row.get("pip"),
    }


def ubuntu(suite: str) -> Iterator[Package]:
    """Yield the packages of a suite of Ubuntu."""
    data = table("pythons")["ubuntu"]
    for row in data["rows"]:
        if row["suite"] == suite:
            for entry in data["packages"]:
                yield expand({**entry, "python": row["python"]}, _values(row), row["version"], "apt")


def el(dist: str) -> Iterator[Package]:
    """Yield the packages of an Enterprise Linux."""
    for row in table("pythons")["el"]["rows"]:
        if row["dist"] == dist:
            yield from _el(row)


def _el(row: dict) -> Iterator[Package]:
    for entry in table("pythons")["el"]["packages"]:
        version = row.get(entry.get("version", "version"))
        if version is None:  # Python 3.12 needs no setuptools
            continue
        requires = [*entry.get("requires", ()), *(entry.get("requires_setuptools", ()) if "setuptools" in row else ())]
        provides = [*entry.get("provides", ()), *(row.get("provides", ()) if entry["name"] == "{n}" else ())]
        filled = {**entry, "requires": requires, "provides": provides, "python": row["python"]}
        yield expand(filled, _values(row), version, "dnf")


def installed(archive: str) -> list[str]:
    """Names of the packages that an installed system has: those of its own Python, and what they need."""
    data = table("pythons")
    return [name for row in data["ubuntu"]["rows"] + data["el"]["rows"]
            if archive in (row.get("suite"), row.get("dist")) for name in row.get("installed", ())]  # fmt: skip


def streams(dist: str) -> Iterator[tuple[str, str, list[Package]]]:
    """Modules of an Enterprise Linux: name, its default stream, and the packages there."""
    for row in table("pythons")["el"]["rows"]:
        if row["dist"] == dist and "module" in row:
            yield row["name"], row["module"], list(_el(row))
