# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the document says of a whole node."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import ACTION_CLASSES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.document import ACTIONS, action_of


@pytest.mark.parametrize(("findings", "action"), [
    ([], "none"),
    ([("degraded", "application"), ("degraded", "application")], "application"),
    ([("degraded", "monitor"), ("degraded", "configure")], "configure"),
    ([("failed", "reset"), ("failed", "reboot"), ("degraded", "monitor")], "reboot"),
    ([("failed", "reboot"), ("failed", "isolate")], "isolate"),
    # A check that crashed or timed out condemns no node, and a class that nobody knows goes to a person.
    ([("unknown", "reboot")], "monitor"), ([("unknown", "configure"), ("degraded", "application")], "monitor"),
    ([("failed", "dance")], "monitor"), ([("degraded", None)], "monitor"),
])  # fmt: skip
def test_one_action_covers_all_findings(findings, action):
    assert action_of([{"severity": severity, "action_class": name} for severity, name in findings]) == action


def test_every_class_has_its_place():
    assert set(ACTIONS) == set(ACTION_CLASSES)
