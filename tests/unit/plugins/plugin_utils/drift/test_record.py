# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts in, records out; facts of the wrong shape are refused."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import (
    node_comparisons,
    node_drift,
    observe,
    record,
)

STATE = {"package_manager_interrupted": True, "services": {"chrony": {"enabled": True, "active": True}}}
INTERRUPTED = {
    "component": "node", "subject": "package manager", "desired": "consistent", "observed": "interrupted",
    "status": "differs", "remedy": "repair", "kind": "state",
}  # fmt: skip


@pytest.mark.parametrize("state", [None, {}])
def test_without_a_fact_nothing_was_measured(state):
    assert observe(state).measured is False
    assert observe(STATE).measured is True


def test_the_wrong_shape_is_refused_by_the_name_of_the_fact():
    with pytest.raises(DocumentError, match="gpu_node_state"):
        observe({"services": "chrony"})


def test_a_difference_is_a_mapping_of_texts():
    assert node_drift(None, STATE, {}) == [INTERRUPTED]
    found = Comparison("node", "package manager", "consistent", "interrupted", Status.DIFFERS, Remedy.REPAIR, "state")
    assert record(found) == INTERRUPTED


def test_comparisons_have_what_is_as_planned_too():
    found = {one.subject: one.status for one in node_comparisons(None, STATE, {})}
    assert found == {
        "package manager": Status.DIFFERS,
        "time service": Status.AS_PLANNED,
        "reboot": Status.AS_PLANNED,
    }
