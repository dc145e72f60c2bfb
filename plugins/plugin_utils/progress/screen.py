# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control sequences that keep the last rows of a terminal for a status, as apt does.

The rest becomes the scrolling region, so whatever else is printed or asked for stays above. Of VT100 and ECMA-48, which every
terminal emulator in use follows.
"""

from __future__ import annotations

from collections.abc import Sequence

SAVE, RESTORE = "\x1b7", "\x1b8"  # position and attributes of the cursor
DOWN, UP = "\x1bD", "\x1b[{}A"  # down: scrolls at the end, stays in its column
REGION, NO_REGION = "\x1b[1;{}r", "\x1b[r"
ROW, CLEAR = "\x1b[{};1H", "\x1b[2K"
PLAIN = "\x1b[0m"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"


class Screen:
    """The terminal's state; its methods return the text to write."""

    def __init__(self) -> None:
        self._rows = 0
        self._kept = 0

    def show(self, lines: Sequence[str], rows: int) -> str:
        """Return the sequence that shows these lines, and nothing else, in the last rows of a terminal that has ``rows``."""
        out = ""
        if self._kept and rows != self._rows:
            # Where the old lines are after a change of size is the emulator's choice.
            out, self._kept = SAVE + NO_REGION + RESTORE, 0
        self._rows = rows
        out += self._keep(len(lines))
        if not lines:
            return out
        text = "".join(
            f"{ROW.format(rows - len(lines) + number)}{CLEAR}{line}" for number, line in enumerate(lines, start=1)
        )
        return f"{out}{SAVE}{PLAIN}{NO_WRAP}{text}{WRAP}{RESTORE}"

    def release(self) -> str:
        """Return the sequence that gives all rows back."""
        return self._keep(0)

    def _keep(self, count: int) -> str:
        before, self._kept = self._kept, count
        more = count - before
        if more == 0:
            return ""
        region = REGION.format(self._rows - count) if count else NO_REGION
        if more > 0:
            return f"{DOWN * more}{UP.format(more)}{SAVE}{region}{RESTORE}"
        given = "".join(ROW.format(row) + CLEAR for row in range(self._rows - before + 1, self._rows - count + 1))
        return f"{SAVE}{PLAIN}{given}{region}{RESTORE}"
