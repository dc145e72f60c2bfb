# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files of a recorded machine."""

import os
from pathlib import Path


def write(root: Path, files: "dict[str, str]") -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.relpath(target, place.parent))


def write_device(sys: Path, path: "tuple[str, ...]", files: "dict[str, str]") -> None:
    """Write a PCI device to its place below /sys/devices, with its link in /sys/bus/pci/devices."""
    home = sys / "devices" / Path(*path)
    write(home, {name: f"{text}\n" for name, text in files.items()})
    link(sys / "bus" / "pci" / "devices" / path[-1], home)
