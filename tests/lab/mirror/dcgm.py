# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of DCGM and its exporter, and what their stubs bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .model import Package, numbers, table
from .stub import Maker, Payload

# ansible-test lets no file here begin with one.
SHEBANG = "#!/usr/bin/python3\n"
MANAGER = "datacenter-gpu-manager-4"
PROGRAM = Path(__file__).with_name("files") / "dcgm-exporter"


def packages(slug: str, manager: str) -> Iterator[Package]:
    """Yield the packages of DCGM in one of NVIDIA's repositories."""
    data, dnf = table("dcgm"), manager == "dnf"
    if slug not in data["repositories"]:
        return
    architecture = "x86_64" if dnf else "amd64"
    for version in data["core"]:
        yield from _release(version, architecture, dnf)
    needs = f"{MANAGER}-core >= 1:4" if dnf else f"{MANAGER}-core (>= 1:4)"
    for version in data["exporter"]:
        yield Package(
            "datacenter-gpu-manager-exporter", f"{version}-1", architecture, depends=(needs,), files=("dcgm_exporter",)
        )


def _release(version: str, architecture: str, dnf: bool) -> Iterator[Package]:
    """Return the packages of one release of DCGM 4, less what is for developers and several nodes."""
    data, full, exact = table("dcgm"), f"{version}-1", "{} = 1:{}" if dnf else "{} (= 1:{})"
    core = Package(
        f"{MANAGER}-core", full, architecture, epoch=1, conflicts=("datacenter-gpu-manager",), files=("dcgm",)
    )
    yield replace(core, depends=() if dnf else tuple(data["depends"]))
    needs, plain = (exact.format(f"{MANAGER}-core", full),), Package(MANAGER, full, architecture, epoch=1)
    for cuda in data["cuda"]:
        provides = (exact.format(MANAGER, full),)
        yield replace(plain, name=f"{MANAGER}-cuda{cuda}", depends=needs, provides=provides)
        yield replace(plain, name=f"{MANAGER}-proprietary-cuda{cuda}")
    yield replace(plain, name=f"{MANAGER}-proprietary")


def known_fields(version: str) -> list[str]:
    """Return the fields that a release of the exporter knows."""
    rows = table("dcgm")["fields"]
    return [
        f"DCGM_FI_DEV_{name}" for row in rows if numbers(str(row["first"])) <= numbers(version) for name in row["names"]
    ]


def _core(maker: Maker, package: Package, payload: Payload) -> None:
    maker.library(payload, "libdcgm", package.upstream, maker.libraries["empty"], soname="4")


def _exporter(_maker: Maker, package: Package, payload: Payload) -> None:
    text = PROGRAM.read_text(encoding="utf-8").replace("@FIELDS@", " ".join(known_fields(package.upstream)))
    payload.program("/usr/bin/dcgm-exporter", SHEBANG + text.replace("@VERSION@", package.upstream))
    payload.files["/usr/lib/systemd/system/nvidia-dcgm-exporter.service"] = table("dcgm")["unit"].encode()


KINDS = {"dcgm": _core, "dcgm_exporter": _exporter}
