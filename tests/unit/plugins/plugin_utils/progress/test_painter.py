# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens where there is no terminal, or no longer; tests/unit/plugins/callback has one."""

import io
import os
import pty
import threading

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.progress.painter import Painter, can_show


@pytest.fixture
def terminal():
    _master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream


@pytest.mark.parametrize(("term", "shown"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_terminal_that_moves_its_cursor(terminal, term, shown):
    assert can_show(terminal, term) is shown


def test_other_streams():
    assert not can_show(io.StringIO(), "xterm")
    assert not can_show(None, "xterm")


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_terminal_that_went_away_ends_the_status_alone():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        painter = Painter(stream, threshold=0, interval=0.1, hosts=3)
        before = set(threading.enumerate())
        painter.start("gpu-1", "Build")
        (thread,) = set(threading.enumerate()) - before
        thread.join(10)
        assert not thread.is_alive(), "a pipe has no size, and nobody reads it"
        painter.start("gpu-1", "Install")
        painter.end("gpu-1")
        painter.stop()
        assert set(threading.enumerate()) <= before
