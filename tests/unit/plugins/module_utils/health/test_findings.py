# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import finding, judged, verdict


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ([], "ok"),
        (["unknown"], "unknown"),
        (["unknown", "degraded"], "degraded"),
        (["degraded", "reboot_required"], "reboot_required"),
        (["failed", "reboot_required", "degraded"], "failed"),
    ],
)
def test_the_verdict_is_the_worst_that_is_known(severities, expected):
    assert verdict([finding("x", 1, 2, severity, "") for severity in severities]) == expected


def test_what_is_well_has_no_findings():
    assert judged("xid", 1, 1, [None])["findings"] == []
