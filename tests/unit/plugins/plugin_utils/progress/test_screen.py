# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a terminal shows after the control sequences, next to one that prints the same text and has more rows."""

import pyte
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.progress.screen import Screen
from hypothesis import given
from hypothesis import strategies as st

COLUMNS, ROWS = 20, 8


class Terminal:
    def __init__(self):
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000)
        self.stream = pyte.Stream(self.screen)
        self.status = Screen()

    def print(self, text):
        self.stream.feed(text.replace("\n", "\r\n"))  # as the terminal's driver does

    def show(self, *lines):
        self.print(self.status.show(lines, self.screen.lines))

    def release(self):
        self.print(self.status.release())

    def rows(self):
        return [line.rstrip() for line in self.screen.display]


@pytest.mark.parametrize("printed", range(ROWS + 3))
def test_lines_are_below_what_is_printed(printed):
    terminal = Terminal()
    text = [f"line {number}" for number in range(printed)]
    terminal.print("".join(f"{line}\n" for line in text))
    terminal.show("a", "b")
    above = text[-(ROWS - 3) :]  # the last row above is the cursor's
    assert terminal.rows() == above + [""] * (ROWS - 2 - len(above)) + ["a", "b"]


def test_printing_goes_on_above():
    terminal = Terminal()
    terminal.print("1\n2\n3\n4\n5\n6\nprompt: ")
    terminal.show("a", "b")
    terminal.print("yes\nand more\n")
    terminal.show("c")
    assert terminal.rows() == ["4", "5", "6", "prompt: yes", "and more", "", "", "c"]


def test_all_rows_are_given_back():
    terminal = Terminal()
    terminal.print("1\n2\n")
    terminal.show("a", "b", "c")
    terminal.release()
    terminal.print("3\n4\n5\n6\n7\n8\n")
    assert terminal.rows() == ["2", "3", "4", "5", "6", "7", "8", ""]


def test_nothing_is_written_where_nothing_is_shown():
    screen = Screen()
    assert screen.show([], ROWS) == ""
    assert screen.release() == ""


def test_a_terminal_of_another_size():
    terminal = Terminal()
    terminal.print("1\n2\n")
    terminal.show("a", "b")
    terminal.screen.resize(ROWS + 4, COLUMNS)
    terminal.show("c")
    assert terminal.rows()[:2] == ["1", "2"]
    assert terminal.rows()[-1] == "c"
    terminal.print("".join(f"line {number}\n" for number in range(20)))
    assert terminal.rows()[-3:] == ["line 19", "", "c"]


WORDS = st.text("xyz", min_size=1, max_size=8)
STEPS = st.lists(st.one_of(st.tuples(st.just("print"), WORDS), st.tuples(st.just("show"), st.lists(WORDS, max_size=3))))


@given(STEPS)
def test_nothing_that_is_printed_gets_lost(steps):
    terminal, printed = Terminal(), []
    for what, value in steps:
        if what == "print":
            printed.append(value)
            terminal.print(f"{value}\n")
        else:
            terminal.show(*value)
            assert terminal.rows()[ROWS - len(value) :] == value
    terminal.release()
    past = ["".join(row[column].data for column in range(COLUMNS)).rstrip() for row in terminal.screen.history.top]
    assert [line for line in past + terminal.rows() if line] == printed
