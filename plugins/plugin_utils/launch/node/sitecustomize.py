# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imported by a rank's Python before the script: on a signal, it writes the stacks of its threads to rank<N>.stack in the run's logs.

faulthandler does so even where the script waits in a call that never returns. rank.py names the file, and puts this directory before
PYTHONPATH; both are taken back here, so that neither the script nor what it starts sees them. The environment's own sitecustomize follows.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from pathlib import Path

FILE, BEFORE = "ALLREDUCE_STACK", "ALLREDUCE_PYTHONPATH"


def main() -> None:
    """Write the number of this process to the file, and the stacks whenever module training_unit asks."""
    path, before = os.environ.pop(FILE, None), os.environ.pop(BEFORE, None)
    sys.path[:] = [one for one in sys.path if one != str(Path(__file__).parent)]
    os.environ.pop("PYTHONPATH", None)
    if before is not None:
        os.environ["PYTHONPATH"] = before
    if path:
        import faulthandler
        import signal

        stream = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        # Nobody else uses it; see stacks.py of module_utils.
        faulthandler.register(signal.SIGRTMIN + 9, stream, all_threads=True)


if __name__ == "sitecustomize":
    with contextlib.suppress(Exception):  # a script begins whether or not its stacks can be had
        main()
    own = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own
