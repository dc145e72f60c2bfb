# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.filter._environments_settled import FilterModule

SYSTEM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
MEASURED = {"ansible_facts": {"gpu_stack": {"os": SYSTEM, "environments": []}, "gpu_node_state": {"environments": {}}}}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (MEASURED, True),
        ({**MEASURED, "frameworks_relock": False}, True),
        ({**MEASURED, "frameworks_relock": "no"}, True),
        # Asked for in the variables of one host.
        ({**MEASURED, "frameworks_relock": "yes"}, False),
        ({**MEASURED, "frameworks_relock": True}, False),
        ({"ansible_facts": {"gpu_stack": MEASURED["ansible_facts"]["gpu_stack"]}}, False),
        ({}, False),
    ],
)
def test_all_hosts_count(variables, expected):
    settled = FilterModule().filters()["_environments_settled"]
    assert settled(["gpu-1", "gpu-2"], {"gpu-1": MEASURED, "gpu-2": variables, "gpu-3": {}}) is expected
