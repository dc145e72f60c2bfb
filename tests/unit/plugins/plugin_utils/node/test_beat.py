# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines about a module that runs for long, without a callback."""

import re
import time
from types import SimpleNamespace

import pytest
from ansible.utils.display import Display
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node import beat

TASK = SimpleNamespace(get_name=lambda include_role_fqcn: "nvidia_driver : Install")


def told(capsys, at_least, seconds):
    """Return the lines that are printed until there are so many, or this time has passed."""
    lines, ends = [], time.monotonic() + seconds
    while len(lines) < at_least and time.monotonic() < ends:
        time.sleep(0.05)
        lines += capsys.readouterr().out.splitlines()
    return lines


def test_a_line_whenever_a_minute_passes(monkeypatch, capsys):
    monkeypatch.setattr(beat, "EVERY", 0.1)
    with beat.Beat(Display(), "gpu-1", TASK):
        lines = told(capsys, 2, 30)
    assert len(lines) >= 2
    assert all(re.fullmatch(r"gpu-1  \d+s  nvidia_driver : Install", line) for line in lines)
    assert len(told(capsys, 2, 0.3)) <= 1, "it ends with its block"


def test_none_where_the_callback_says_so(monkeypatch, capsys):
    monkeypatch.setattr(beat, "EVERY", 0.1)
    monkeypatch.setattr(beat.Beat, "is_needed", False)
    with beat.Beat(Display(), "gpu-1", TASK):
        assert told(capsys, 1, 0.5) == []


def test_a_failure_ends_the_lines(monkeypatch, capsys):
    monkeypatch.setattr(beat, "EVERY", 0.1)
    with pytest.raises(OSError, match="gone"), beat.Beat(Display(), "gpu-1", TASK):
        raise OSError("gone")
    time.sleep(0.3)
    assert capsys.readouterr().out == ""
