# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the makers of stub packages share."""

from __future__ import annotations

from dataclasses import dataclass, field

LIBRARIES = {"apt": "/usr/lib/x86_64-linux-gnu", "dnf": "/usr/lib64"}

SERVICE = """\
[Unit]
Description={description}
[Service]
Type=simple
ExecStart={program}
[Install]
WantedBy=multi-user.target
"""


@dataclass
class Payload:
    """Files by path (bytes, or the target of a link), the paths that are programs, and scripts by their Debian names."""

    files: dict[str, bytes | str] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    scripts: dict[str, str] = field(default_factory=dict)

    def program(self, path: str, text: str) -> None:
        self.files[path] = text.encode()
        self.programs.add(path)


class Maker:
    """For which package manager, and the libraries that stubs bring: {"nvml": bytes, "empty": bytes}."""

    def __init__(self, manager: str, libraries: dict[str, bytes]):
        self.manager = manager
        self.libraries = libraries
        self.directory = LIBRARIES[manager]

    def library(self, payload: Payload, name: str, version: str, content: bytes, soname: str = "1") -> None:
        payload.files[f"{self.directory}/{name}.so.{version}"] = content
        payload.files[f"{self.directory}/{name}.so.{soname}"] = f"{name}.so.{version}"
