# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say that a module still runs on a node, in a run without the callback progress."""

from __future__ import annotations

import threading
import time
from typing import Any

from ..progress.lines import status_lines
from ..progress.running import Row
from .screen import show

EVERY = 60.0  # seconds
COLUMNS = 80


class Beat:
    """While its block runs, print a line with the time since its beginning every minute."""

    # False where the callback says it; actions run in processes that Ansible forks from its own.
    is_needed = True

    def __init__(self, display: Any, host: str, task: Any) -> None:
        self._display, self._host, self._task = display, host, task
        self._began, self._end = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Beat:
        if self.is_needed:
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(EVERY):
            row = Row(self._host, self._task.get_name(include_role_fqcn=False), time.monotonic() - self._began)
            show(self._display, status_lines([row], COLUMNS, 1))
