# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.pci_ids [pci.ids]`: rebuild data/stack/pci_ids.yml from the public PCI ID database.

The database is Debian's package pci.ids, and hwdata elsewhere. What is taken of it: NVIDIA's GPUs whose chip
data/stack/architectures.yml knows, and the vGPUs by whose subsystem ids guests of their boards see them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

TABLES = Path(__file__).resolve().parents[1] / "data" / "stack"
DATABASE = Path("/usr/share/misc/pci.ids")
NVIDIA = "10de"
HEAD = """\
---
# GPUs by PCI device id, under the chip that they are made of; vgpus: those that guests see by a subsystem id.
# Made by `python -m tools.pci_ids FILE` from the PCI ID database (https://pci-ids.ucw.cz) and not edited by hand: what the
# database lacks stands in gpus.yml. The database is copyright Martin Mares and Albert Pool, who distribute it under
# GPL-2.0-or-later or BSD-3-Clause; taken here under the former.
"""
DEVICE = re.compile(r"^\t([0-9a-f]{4})  (\S+)(?: [^\[]*)?(?:\[(.+)\])?\s*$")
SUBSYSTEM = re.compile(r"^\t\t10de ([0-9a-f]{4})  (.+)$")
# What else has a chip's name: its functions in addition to the GPU, and what was never sold.
OTHERS = re.compile(r"Audio|USB|UCSI|bridge|host|NVSwitch|Reserved|Engineering Sample")
VGPU = re.compile(r"^GRID (?:\S+-\d+[ABCQ]|RTX T10-\d+|K\d+Q?)$")


def nvidia_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the database below NVIDIA."""
    inside = False
    for line in lines:
        if re.match(r"[0-9a-f]{4}  ", line):
            inside = line.startswith(f"{NVIDIA}  ")
        elif inside and line.startswith("\t"):
            yield line.rstrip("\n")


def version_of(text: str) -> str:
    """Return the day the database was made."""
    found = re.search(r"^#\s+Version:\s+(\S+)", text, re.MULTILINE)
    if not found:
        raise SystemExit("This is not a PCI ID database: it has no version.")
    return found[1]


def gpus(text: str, chips: Iterable[str]) -> list[dict]:
    """Return a row for each of the chips' variants: chip, devices {id: name} and, where there are any, vgpus."""
    known, rows, device = tuple(chips), {}, None
    for line in nvidia_lines(text.splitlines()):
        found = DEVICE.match(line)
        if found:
            number, chip, name = found.groups()
            device = None if OTHERS.search(line) or not chip.startswith(known) else (number.upper(), chip)
            if device:
                rows.setdefault(chip, {"chip": chip, "devices": {}, "vgpus": {}})["devices"][device[0]] = name or chip
        subsystem = SUBSYSTEM.match(line)
        if subsystem and device and VGPU.match(subsystem[2]):
            rows[device[1]]["vgpus"].setdefault(device[0], {})[subsystem[1].upper()] = subsystem[2]
    return [{key: value for key, value in rows[chip].items() if value} for chip in sorted(rows)]


def render(version: str, rows: Iterable[dict]) -> str:
    """Return the table as a file of YAML with one line for each device."""
    lines = [f'{HEAD}database: "{version}"\nrows:']
    for row in rows:
        lines += [f"  - chip: {row['chip']}", "    devices:"]
        lines += [f'      "{number}": {json.dumps(name)}' for number, name in sorted(row["devices"].items())]
        for number, names in sorted(row.get("vgpus", {}).items()):
            lines += ["    vgpus:"] if number == min(row["vgpus"]) else []
            inside = ", ".join(f'"{one}": {json.dumps(name)}' for one, name in sorted(names.items()))
            lines.append(f'      "{number}": {{{inside}}}')
        lines.append("    sources: [P2]")
    return "\n".join(lines) + "\n"


def chips(tables: Path = TABLES) -> list[str]:
    """Return the beginnings of the names of all chips that the tables know."""
    rows = yaml.safe_load((tables / "architectures.yml").read_text(encoding="utf-8"))["rows"]
    return [chip for row in rows for chip in row["chips"]]


def main(arguments: list[str]) -> int:
    """Write the table of this checkout."""
    text = Path(arguments[0] if arguments else DATABASE).read_text(encoding="utf-8")
    rows = gpus(text, chips())
    (TABLES / "pci_ids.yml").write_text(render(version_of(text), rows), encoding="utf-8")
    print(f"{sum(len(row['devices']) for row in rows)} GPUs of {len(rows)} chips; now: python -m tools.table_version")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
