# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what is being done, with the time since the command began."""

import sys
import time

_START = time.monotonic()


class LabError(Exception):
    """One sentence for the user: what is wrong, the value seen, what to do."""


def say(text):
    """Print one progress line on stderr: `[  1:05] text`."""
    minutes, seconds = divmod(int(time.monotonic() - _START), 60)
    print(f"[{minutes:3d}:{seconds:02d}] lab: {text}", file=sys.stderr, flush=True)
