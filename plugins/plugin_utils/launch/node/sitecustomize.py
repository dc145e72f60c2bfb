# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imported by a rank's Python before the script: notes in the run's logs where the script is, and the exception that ends it.

On a signal, faulthandler writes the stacks of all threads to rank<N>.stack, even where the script waits in a call that never returns. An
exception that is not caught leaves the names of its types in rank<N>.cause. rank.py names the first file, and puts this directory before
PYTHONPATH; both are taken back here, so that neither the script nor what it starts sees them. The environment's own sitecustomize follows.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

FILE, BEFORE = "ALLREDUCE_STACK", "ALLREDUCE_PYTHONPATH"
# Names of types that are noted, and characters of each.
MOST, WIDTH = 30, 200


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
        # No other code uses it; see stacks.py of module_utils.
        faulthandler.register(signal.SIGRTMIN + 9, stream, all_threads=True)
        note_exceptions(Path(path).with_suffix(".cause"))


def note_exceptions(path: Path) -> None:
    """Have the types of an exception that ends this process written to a file; what printed it before still does."""
    before, rank = sys.excepthook, os.getpid()

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if os.getpid() == rank:  # and not a child that it forked
            with contextlib.suppress(Exception):
                names = itertools.islice(types(error), MOST)
                path.write_text("\n".join(names), encoding="utf-8", errors="replace")
        before(kind, error, trace)

    sys.excepthook = note


def types(error: BaseException | None) -> Iterator[str]:
    """Yield the names of an exception's class and of its bases, then those of the exception that it was raised from."""
    while error is not None:
        for one in type(error).__mro__[:-1]:
            yield f"{one.__module__}.{one.__qualname__}"[:WIDTH]
        error = error.__cause__


if __name__ == "sitecustomize":
    with contextlib.suppress(Exception):  # a script begins whether or not its stacks can be had
        main()
    own = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own
