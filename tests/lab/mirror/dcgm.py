# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of DCGM and its exporter, and what their stubs bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .model import Package, numbers, table
from .stub import Maker, Payload

# ansible-test lets no file here begin with one.
SHEBANG = "#!/usr/bin/python3\n"
PROGRAM = Path(__file__).with_name("files") / "dcgm-exporter"


def packages(slug: str, manager: str) -> Iterator[Package]:
    """Return what one of NVIDIA's repositories has of them."""
    data, dnf = table("dcgm"), manager == "dnf"
    if slug not in data["repositories"]:
        return
    architecture, core = ("x86_64" if dnf else "amd64"), "datacenter-gpu-manager-4-core"
    for version in data["core"]:
        yield Package(core, f"{version}-1", architecture, epoch=1, files=("dcgm",))
    needs = f"{core} >= 1:4" if dnf else f"{core} (>= 1:4)"
    for version in data["exporter"]:
        yield Package(
            "datacenter-gpu-manager-exporter", f"{version}-1", architecture, depends=(needs,), files=("dcgm_exporter",)
        )


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
