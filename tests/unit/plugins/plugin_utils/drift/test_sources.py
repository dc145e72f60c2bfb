# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components of the distribution's archive that the driver needs."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import AptSource, Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Driver
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.driver import compare_driver

ARCHIVE = "http://mirror.example/debian"
MAIN_ONLY = (AptSource(ARCHIVE, "bookworm", ("main",)), AptSource(ARCHIVE, "bookworm-updates", ("main",)))
OURS = tuple(AptSource(ARCHIVE, one.suite, ("contrib", "non-free")) for one in MAIN_ONLY)
OTHER = (AptSource("http://other.example", "stable", ("stable",)),)


@pytest.mark.parametrize(
    ("mirrors", "status", "observed"),
    [
        (MAIN_ONLY, Status.MISSING, ""),
        (MAIN_ONLY + OTHER, Status.MISSING, ""),
        (MAIN_ONLY + OURS[:1], Status.MISSING, ""),
        (MAIN_ONLY + OURS, Status.AS_PLANNED, "contrib, non-free"),
        (MAIN_ONLY + (AptSource(ARCHIVE, "bookworm", ("non-free",)),), Status.MISSING, ""),
        ((), Status.AS_PLANNED, "contrib, non-free"),
        (None, Status.UNKNOWN, ""),
    ],
)
def test_every_suite_of_the_archive_needs_every_component(mirrors, status, observed):
    driver = Driver(version="535.261.03", branch="535", source="distribution", components=("contrib", "non-free"))
    (found,) = [
        one for one in compare_driver(driver, Observed(packages={}, apt_mirrors=mirrors), False) if one.kind == "source"
    ]
    assert (found.status, found.observed) == (status, observed)
    wanted = {Status.AS_PLANNED: Remedy.NONE, Status.UNKNOWN: Remedy.MEASURE}.get(status, Remedy.SOURCES)
    assert found.remedy is wanted
