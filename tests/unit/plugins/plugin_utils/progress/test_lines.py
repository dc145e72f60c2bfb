# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.progress.lines import elapsed, status_lines
from ansible_collections.allreduce.gpu.plugins.plugin_utils.progress.running import Row
from hypothesis import given
from hypothesis import strategies as st

ROWS = [
    Row("gpu-10", "nvidia_driver : Build", 252.9),
    Row("gpu-2", "base : Install packages", 59.9),
    Row("gpu-3", "uv", 6),
]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m 00s"), (65, "1m 05s"), (3599, "59m 59s"), (3600, "1h 00m"), (90000, "25h 00m")],
)
def test_elapsed(seconds, text):
    assert elapsed(seconds) == text


@pytest.mark.parametrize(
    ("most", "lines"),
    [
        (0, []),
        (1, ["3 hosts at work"]),
        (2, ["gpu-10  4m 12s  nvidia_driver : Build", "2 more hosts at work"]),
        (3, ["gpu-10  4m 12s  nvidia_driver : Build", "gpu-2      59s  base : Install packages", "gpu-3       6s  uv"]),
    ],
)
def test_lines(most, lines):
    assert status_lines(ROWS, 80, most) == lines


@pytest.mark.parametrize(("columns", "line"), [(15, "gpu-3  6s  a b "), (14, "gpu-3  6s  ..."), (2, ".."), (0, "")])
def test_a_line_fits_and_moves_no_cursor(columns, line):
    assert status_lines([Row("gpu-3", "a\tb\x1b", 6)], columns, 1) == [line]


@given(
    st.lists(st.builds(Row, st.text(), st.text(), st.floats(0, 1e6)), max_size=6), st.integers(0, 99), st.integers(0, 7)
)
def test_lines_never_leave_their_place(rows, columns, most):
    lines = status_lines(rows, columns, most)
    assert len(lines) == min(len(rows), most)
    assert all(len(line) <= columns and line.isprintable() for line in lines)
