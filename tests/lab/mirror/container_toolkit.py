# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the NVIDIA Container Toolkit, and what their stubs bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from .model import Package, numbers, table
from .stub import Maker, Payload

# ansible-test lets no file here begin with one.
SHEBANG = "#!/usr/bin/python3\n"
PROGRAM = Path(__file__).with_name("files") / "nvidia-ctk"
UNITS = {
    "service": """\
[Unit]
Description=Refresh NVIDIA CDI specification file
ConditionPathExists=|/usr/bin/nvidia-smi
ConditionPathExists=|/usr/sbin/nvidia-smi
ConditionPathExists=/usr/bin/nvidia-ctk
[Service]
Type=oneshot
Environment=NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml
ExecStart=/usr/bin/nvidia-ctk cdi generate
[Install]
WantedBy=multi-user.target
""",
    "path": """\
[Unit]
Description=Trigger CDI refresh
[Path]
PathChanged=/usr/bin/nvidia-ctk
[Install]
WantedBy=multi-user.target
""",
}


def packages(slug: str, manager: str) -> Iterator[Package]:
    """Yield the packages of the toolkit in one of NVIDIA's repositories."""
    data, dnf = table("container_toolkit"), manager == "dnf"
    if slug not in data["repositories"]:
        return
    arch = "x86_64" if dnf else "amd64"
    for upstream in data["versions"]:
        version, old = f"{upstream}-1", numbers(upstream) < numbers(data["same_version"])
        tools = ("libnvidia-container-tools", ">=" if old else "=", version)
        depends = [
            ("nvidia-container-toolkit-base", "=", version),
            tools,
            ("libnvidia-container-tools", "<" if dnf else "<<", "2.0.0"),
        ]
        of_library = (("libnvidia-container1", ">=" if old else "=", version),)
        yield Package("libnvidia-container1", version, arch, files=("container_library",))
        yield Package("libnvidia-container-tools", version, arch, depends=_relations(of_library, dnf))
        yield Package("nvidia-container-toolkit-base", version, arch, files=("container_toolkit",))
        yield Package("nvidia-container-toolkit", version, arch, depends=_relations(depends, dnf))


def _relations(wanted: Iterable[tuple[str, str, str]], dnf: bool) -> tuple[str, ...]:
    return tuple(" ".join(one) if dnf else f"{one[0]} ({one[1]} {one[2]})" for one in wanted)


def _library(maker: Maker, package: Package, payload: Payload) -> None:
    maker.library(payload, "libnvidia-container", package.upstream, maker.libraries["empty"])


def _toolkit(maker: Maker, package: Package, payload: Payload) -> None:
    payload.program(
        "/usr/bin/nvidia-ctk", SHEBANG + PROGRAM.read_text(encoding="utf-8").replace("@VERSION@", package.upstream)
    )
    if numbers(package.upstream) < numbers(table("container_toolkit")["refresh"]):
        return
    for kind, text in UNITS.items():
        payload.files[f"/usr/lib/systemd/system/nvidia-cdi-refresh.{kind}"] = text.encode()
    units = "nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
    start = f"systemctl daemon-reload\nsystemctl enable --now {units} || :"
    payload.scripts["postinst"] = f"if [ -d /run/systemd/system ]; then\n{start}\nfi"
    condition = '[ "$1" = remove ]' if maker.manager == "apt" else '[ "$1" = 0 ]'
    payload.scripts["prerm"] = f"if {condition}; then\nsystemctl disable --now {units} || :\nfi"


KINDS = {"container_library": _library, "container_toolkit": _toolkit}
