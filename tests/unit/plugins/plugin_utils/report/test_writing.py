# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import ReportError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.writing import apply, plan


def test_only_what_differs_is_written(tmp_path):
    same, other, new = (tmp_path / name for name in ("same", "other", "new"))
    same.write_text("é", encoding="utf-8")
    other.write_text("old")
    changes = plan({same: "é", other: "b", new: "c"})

    assert [(change.path, change.verb) for change in changes] == [(other, "updated"), (new, "created")]
    apply(changes)
    assert (other.read_text(), new.read_text()) == ("b", "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "other", "same"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError) as unread:
        plan({tmp_path / "file" / "report.html": "a"})
    with pytest.raises(ReportError) as unwritten:
        apply(plan({tmp_path / "gone" / "report.html": "a"}))
    assert [one.value.problems for one in (unread, unwritten)] == [
        (Problem("report_not_read", str(tmp_path / "file/report.html"), {"error": "Not a directory"}),),
        (Problem("report_not_written", str(tmp_path / "gone/report.html"), {"error": "No such file or directory"}),),
    ]
