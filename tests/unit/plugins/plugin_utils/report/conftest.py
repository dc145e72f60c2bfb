# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of imagined clusters."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.tests.report import cluster


@pytest.fixture(scope="session")
def report():
    """Two nodes: one check failed, one is unknown; four training runs."""
    return cluster.build_report(cluster.verification(), cluster.results(), title="Cluster A")


@pytest.fixture(scope="session")
def large_report():
    """A thousand nodes, equal but for one."""
    return cluster.build_report(cluster.many_nodes(1000), [], title="Large")
