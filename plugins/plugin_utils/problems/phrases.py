# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words and numbers of the report: text from elsewhere made harmless, values made readable."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ...module_utils.machine.topology import natural_key

# Colours, cursor movements and window titles that programs print for terminals.
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# What XML 1.0 cannot hold, lone surrogates (no UTF-8), and marks that reverse the reading direction.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
# Python makes no number of more than some thousand digits.
_NUMBERED = re.compile(r"^(.*?)([0-9]{1,18})([^0-9]*)$")


def clean(text: str) -> str:
    """Return a text as HTML, JSON and XML can hold it.

    >>> clean("\\x1b[31mred\\x1b[0m")
    'red'
    """
    plain = _TERMINAL_SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", plain)


def quantity(value: float | None, digits: int = 4) -> str:
    """Return a number with about this number of significant digits and thousands separated.

    >>> quantity(1234.5), quantity(12.3456), quantity(0.00012)
    ('1,234', '12.35', '0.00012')
    """
    if value is None:
        return ""
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.{digits - 2}g}"
    return f"{value:.{digits - 1 - math.floor(math.log10(abs(value)))}f}".rstrip("0").rstrip(".")


def plural(count: int, noun: str) -> str:
    """Return a count and its noun.

    >>> plural(1, "node"), plural(1200, "node"), plural(2, "process"), plural(6, "NVSwitch"), plural(3, "epoch")
    ('1 node', '1,200 nodes', '2 processes', '6 NVSwitches', '3 epochs')
    """
    ending = "" if count == 1 else "es" if noun.endswith(("s", "nch", "tch")) else "s"
    return f"{count:,} {noun}{ending}"


def enumeration(items: Iterable[str]) -> str:
    """Return items as a sentence lists them.

    >>> enumeration(["1", "2", "4"])
    '1, 2 and 4'
    """
    found = list(items)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)


def hostlist(names: Iterable[str]) -> str:
    """Fold node names: runs of numbers the way schedulers write them; up to three names stand as they are.

    >>> hostlist(["gpu-1", "gpu-2", "gpu-3", "gpu-7", "login"])
    'gpu-[1-3,7], login'
    """
    found = sorted(set(names), key=natural_key)
    if len(found) <= 3:
        return ", ".join(found)
    parts = [_parts(name) for name in found]
    # Names padded with zeros are a series of their own: node09 and node9 are two machines.
    padded = {(prefix, suffix, len(digits)) for prefix, digits, suffix in parts if re.match("0[0-9]", digits)}
    groups: dict[tuple[str, str, int], list[str]] = {}
    for prefix, digits, suffix in parts:
        series = (prefix, suffix, len(digits))
        groups.setdefault(series if series in padded else (prefix, suffix, 0), []).append(digits)
    return ", ".join(_folded(prefix, suffix, digits) for (prefix, suffix, _width), digits in groups.items())


def _parts(name: str) -> tuple[str, str, str]:
    """Prefix, last number and suffix of a name; the number is empty where there is none."""
    match = _NUMBERED.match(name)
    return (match[1], match[2], match[3]) if match else (name, "", "")


def _folded(prefix: str, suffix: str, digits: list[str]) -> str:
    """One series of numbered names: prefix[1-3,7]suffix."""
    if len(digits) == 1:
        return prefix + digits[0] + suffix
    runs: list[list[str]] = []
    for digit in digits:
        if runs and int(digit) == int(runs[-1][-1]) + 1:
            runs[-1].append(digit)
        else:
            runs.append([digit])
    return prefix + "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]" + suffix
