# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What watches a node against what is declared: its files, and its services by what systemd says of them."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.compare import compare_monitoring

EXPORTER = "prometheus-node-exporter"


def files(observed="as declared", status=Status.AS_PLANNED, remedy=Remedy.NONE):
    return Comparison("monitoring", "files", "as declared", observed, status, remedy, "files")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [([], files()), (["/etc/a", "/etc/b"], files("/etc/a, /etc/b", Status.DIFFERS, Remedy.APPLY))],
)
def test_files(changed, expected):
    assert compare_monitoring([], changed, {}) == [expected]


@pytest.mark.parametrize(
    ("found", "observed", "status", "remedy"),
    [
        ({"enabled": True, "active": True}, "enabled and active", Status.AS_PLANNED, Remedy.NONE),
        ({"enabled": True, "active": False}, "enabled and not active", Status.DIFFERS, Remedy.APPLY),
        ({"enabled": False, "active": True}, "not enabled and active", Status.DIFFERS, Remedy.APPLY),
        ({"enabled": True}, "enabled and not active", Status.UNKNOWN, Remedy.MEASURE),
        (None, "not enabled and not active", Status.UNKNOWN, Remedy.MEASURE),
    ],
)
def test_a_service(found, observed, status, remedy):
    state = {EXPORTER: found} if found is not None else {}
    expected = Comparison("monitoring", EXPORTER, "enabled and active", observed, status, remedy, "service")
    assert compare_monitoring([EXPORTER], [], state) == [files(), expected]
