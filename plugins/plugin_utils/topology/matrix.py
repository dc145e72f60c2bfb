# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix of "nvidia-smi topo -m" as people paste it: read whole or cut off at its end, refused with the line where it is torn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
CODES = ("X", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
CODE = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC")
GLUED = re.compile(rf"(?:{CODE.pattern}){{2,}}|(?:PIX|PXB|PHB|NODE|SYS|SOC)[0-9].*")
# A device in the header; text that was pasted through a web page runs them together.
DEVICE = re.compile(r"GPU\d+|NIC\d+|[a-z][a-z0-9_.-]*")
RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
ESCAPE = re.compile(r"\x1b?\[[0-9;]*m")
LEGEND = re.compile(r"(NIC\d+):\s*(\S+)")
EXPECTED = "X, NV and a number, PIX, PXB, PHB, NODE or SYS, with tabs or spaces between them"


@dataclass
class Row:
    """A device's line: its codes, and what its last columns say. ``cut``: the text ends in it."""

    number: int
    device: str
    codes: list[str]
    rest: list[str]
    cut: bool = False


@dataclass
class Matrix:
    """``devices`` in the order of the columns; ``columns`` of affinities; ``names`` of the legend."""

    devices: list[str]
    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def read_matrix(text: str) -> Matrix:
    """Return the matrix; raise ValueError, with the line and what is expected there, for one that cannot be read as it was printed."""
    lines = [ESCAPE.sub("", line).strip("# \t\r") for line in text.splitlines()]
    first = next((number for number, line in enumerate(lines) if _is_header(line)), None)
    if first is None:
        raise ValueError('This is not an output of "nvidia-smi topo -m": no line names GPU0 and the devices after it.')
    devices = _header(first + 1, lines[first])
    matrix = Matrix(devices, [column for column in COLUMNS if column in lines[first]])
    matrix.names = {found[1]: found[2] for found in map(LEGEND.match, lines[first:]) if found}
    found = list(_lines(first + 2, lines[first + 1 :], devices))
    for position, (number, line) in enumerate(found):
        row = _row(number, line, matrix, last=position == len(found) - 1)
        if row.device in [one.device for one in matrix.rows]:
            refuse(number, f"{row.device} appears a second time", "one line for each device")
        matrix.rows.append(row)
    _compare(matrix)
    return matrix


def refuse(number: int, what: str, expected: str) -> NoReturn:
    raise ValueError(f"Line {number} of the matrix cannot be read: {what}. Expected: {expected}.")


def _is_header(line: str) -> bool:
    names = line.partition("CPU Affinity")[0].split()
    if not line.startswith("GPU0") or _is_cell(names[0][len("GPU0") :]):
        return False
    return len(names) == 1 or bool(DEVICE.match(names[1]))


def _is_cell(word: str) -> bool:
    return bool(CODE.fullmatch(word) or GLUED.fullmatch(word))


def _header(number: int, line: str) -> list[str]:
    header = re.split(r"\s*CPU\b", line)[0]
    devices = DEVICE.findall(header)
    other = DEVICE.sub(" ", header).split()
    twice = sorted({device for device in devices if devices.count(device) > 1})
    if other or twice:
        refuse(
            number,
            f'"{(other or twice)[0]}" is {"not a device" if other else "listed twice"}',
            "the name of each GPU and adapter once",
        )
    return devices


def _lines(start: int, lines: list[str], devices: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the rows up to the legend or another header: other matrices may follow."""
    for number, line in enumerate(lines, start):
        if line.startswith("Legend") or _is_header(line):
            return
        word = line.split()[0] if line else ""
        glued = next((one for one in devices if word.startswith(one) and _is_cell(word[len(one) :])), None)
        if glued:
            refuse(number, f'"{word}" is a device and a cell in one', f"{glued}, then {EXPECTED}")
        if word in devices:
            yield number, line


def _row(number: int, line: str, matrix: Matrix, last: bool) -> Row:
    device, *rest = line.split()
    codes: list[str] = []
    while rest and len(codes) < len(matrix.devices) and CODE.fullmatch(rest[0]):
        codes.append(rest.pop(0).replace("SOC", "SYS"))
    row = Row(number, device, codes, rest)
    if len(codes) < len(matrix.devices):
        row.cut = last and (not rest or len(rest) == 1 and any(code.startswith(rest[0]) for code in CODES))
        if not row.cut:
            _refuse_short(row, line, matrix.devices)
        row.rest = []
        # It is not known whether NV1 is the beginning of NV18.
        if not rest and codes and codes[-1].startswith("NV"):
            codes.pop()
    elif rest and _is_cell(rest[0]):
        refuse(
            number,
            f"{device} has more cells than the header has devices, {len(matrix.devices)}",
            "a name in the header for each",
        )
    _check_diagonal(row, matrix.devices)
    _check_affinities(row, matrix, last)
    return row


def _refuse_short(row: Row, line: str, devices: list[str]) -> NoReturn:
    """Refuse a row with missing, empty or merged cells."""
    cells = [cell.strip() for cell in line.split("\t")[1 : len(devices) + 1]]
    if "" in cells:
        refuse(row.number, f"the cell of {row.device} and {devices[cells.index('')]} is empty", EXPECTED)
    if row.rest and GLUED.fullmatch(row.rest[0]):
        refuse(row.number, f'"{row.rest[0]}" are several cells in one', EXPECTED)
    has = f"{row.device} has {len(row.codes)} of {len(devices)} cells"
    if row.rest and not RANGES.fullmatch(row.rest[0]) and row.rest[0] != "N/A":
        refuse(row.number, f'{has}, and "{row.rest[0]}" is not a distance', EXPECTED)
    refuse(row.number, f"{has}; one or more are empty", EXPECTED)


def _check_diagonal(row: Row, devices: list[str]) -> None:
    """Refuse a row in which X is not at the device itself: cells before it are empty or torn."""
    own = devices.index(row.device)
    seen = [place for place, code in enumerate(row.codes) if code == "X"]
    if seen and seen != [own] or not seen and len(row.codes) > own:
        there = f"X is at {devices[seen[0]]}" if seen else "there is no X"
        refuse(
            row.number,
            f"{there} in the line of {row.device}; a cell is empty, or the header lacks a name",
            f"X at {row.device}",
        )


def _check_affinities(row: Row, matrix: Matrix, last: bool) -> None:
    """Refuse last columns that are not lists of CPUs or NUMA nodes; where the text ends in one, that is not known."""
    if not row.device.startswith("GPU"):
        row.rest = []
    for number, value in enumerate(row.rest[: len(matrix.columns)]):
        if value != "N/A" and not RANGES.fullmatch(value):
            if last and number == len(row.rest) - 1:
                row.rest = row.rest[:number]
            else:
                refuse(row.number, f'"{value}" is not a list of CPUs or NUMA nodes', "such as 0-15,64-79, or N/A")


def _compare(matrix: Matrix) -> None:
    """Refuse a matrix that says two distances of one pair. NVLinks may differ in number: a link that is down at one end only."""
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for row in matrix.rows:
        for other, code in zip(matrix.devices, row.codes, strict=False):
            before, number = seen.get((other, row.device), (code, row.number))
            if before != code and not (before.startswith("NV") and code.startswith("NV")):
                refuse(
                    row.number,
                    f"{row.device} and {other} are {code} here and {before} in line {number}",
                    "one distance for a pair",
                )
            seen[row.device, other] = (code, row.number)
