# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that could not be parsed is found in the errors that led to the one that is caught."""

from types import SimpleNamespace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.unreadable import unreadable
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe

ORIGIN = SimpleNamespace(path="group_vars/x.yml", line_num=3, col_num=4)


class Parsing(Exception):
    """An error of Ansible's parser: what it says, and where that was."""

    def __init__(self, message, obj=None):
        super().__init__(message)
        self.message, self.obj = message, obj


def led_to(first, cause=False):
    """Return an error that was raised while another was handled, as Ansible's plugin of variables does."""
    try:
        try:
            raise first
        except Parsing as error:
            if cause:
                raise Parsing("later") from error
            raise Parsing("later")  # noqa: B904 (so does Ansible)
    except Parsing as error:
        return error


@pytest.mark.parametrize(
    "error", [Parsing("a\n b.", ORIGIN), led_to(Parsing("a b.", ORIGIN)), led_to(Parsing("a b", ORIGIN), True)]
)
def test_the_file_is_named(error):
    assert describe(unreadable(error)) == "group_vars/x.yml cannot be read at line 3, column 4 (a b); correct the file."


def test_a_line_without_a_column_begins_at_its_first():
    found = unreadable(Parsing("a", SimpleNamespace(path="x", line_num=3, col_num=None)))
    assert (found.detail["line"], found.detail["column"]) == (3, 1)


@pytest.mark.parametrize(
    "obj", [None, "text", SimpleNamespace(path="x", line_num=None), SimpleNamespace(path=None, line_num=3)]
)
def test_where_none_of_them_tells_there_is_no_problem_to_show(obj):
    assert unreadable(led_to(Parsing("a", obj))) is None
