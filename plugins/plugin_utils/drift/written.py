# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what roles left on a node with what is there now: holds of packages, and files below /etc."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.comparison import Comparison, Remedy, Status, compared
from ..documents.observed import Observed
from .components import BY_HOLD
from .packaged import Desired, Packaged
from .packages import named

NODE = "node"


def compare_written(desired: Desired, observed: Observed) -> list[Comparison]:
    """Return a comparison for each hold, file and line of modprobe's that another one overrides."""
    return [*_holds(desired, observed), *_files(observed), *_modprobe(observed)]


def _holds(desired: Desired, observed: Observed) -> Iterator[Comparison]:
    """Compare the holds of what is planned and there, and those that roles took for themselves.

    Where no role has recorded anything, nothing is held yet.
    """
    held, packages = observed.package_holds, observed.packages or {}
    for name, packaged in BY_HOLD.items() if observed.has_run else ():
        wanted = None if _is_left(packaged, desired) else packaged.hold_of(desired)
        if wanted and set(named(wanted.packages, packages)) - set(named(wanted.excluded, packages)):
            yield _hold(name, "" if name not in held else "held" if held[name] == wanted else "incomplete")
    for name, one in held.items():
        if name not in BY_HOLD:
            yield _hold(name, "held" if one.kept else "incomplete")


def _is_left(packaged: Packaged, desired: Desired) -> bool:
    """Return True if its packages belong to the owner of the driver."""
    driver = desired.stack.driver
    return driver is not None and driver.is_left and packaged.name in ("driver", "fabric_manager", "imex")


def _hold(name: str, state: str) -> Comparison:
    return compared(NODE, f"hold of {name}", "held", state, state == "held", Remedy.APPLY, "hold")


def _files(observed: Observed) -> Iterator[Comparison]:
    """Compare the files that were asked for below /etc, and those that were to go; what is elsewhere can be removed with its directory."""
    for name, seen in sorted({**dict.fromkeys(observed.files_changed, ""), **observed.files}.items()):
        asked = observed.files_changed.get(name, seen)
        if not name.startswith("/etc/") or asked.startswith("directory"):
            continue
        if name not in observed.files_changed:
            yield compared(NODE, name, "as written", "as written", True, Remedy.APPLY, "file")
        elif asked == "absent":
            yield Comparison(NODE, name, "absent", "there again", Status.UNWANTED, Remedy.APPLY, "file")
        else:
            state = "" if seen == "absent" else "edited"
            yield compared(NODE, name, "as written", state, False, Remedy.APPLY, "file")


def _modprobe(observed: Observed) -> Iterator[Comparison]:
    """Yield each line of another tool that sets what a file of ours sets, and is read later."""
    for one in observed.modprobe_overrides:
        state = f"{one.value} by line {one.line} of {one.file}"
        yield compared(NODE, f"{one.parameter} of {one.module}", one.ours, state, False, Remedy.OVERRIDE, "modprobe")
