# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.plugin_utils.progress.running import Row, Running


def test_the_longest_come_first_and_short_ones_do_not_count():
    running = Running()
    running.start("c", "build", 10)
    running.start("b", "install", 0)
    running.start("a", "install", 0)
    assert running.longer_than(5, 14.9) == [Row("a", "install", 14.9), Row("b", "install", 14.9)]
    assert running.longer_than(5, 15) == [Row("a", "install", 15), Row("b", "install", 15), Row("c", "build", 5)]


def test_a_host_has_one_task():
    running = Running()
    running.start("a", "first", 0)
    running.start("a", "second", 8)
    assert running.longer_than(0, 9) == [Row("a", "second", 1)]
    running.end("a")
    running.end("a")
    assert running.longer_than(0, 9) == []


def test_clear():
    running = Running()
    running.start("a", "first", 0)
    running.clear()
    assert running.longer_than(0, 9) == []
