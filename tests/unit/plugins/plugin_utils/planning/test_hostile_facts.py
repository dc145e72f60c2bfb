# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node measures anything: the plan of the others is the one that they get without it."""

from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import fitting
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import READS, plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan_text import plan_table
from hypothesis import given, settings
from hypothesis import strategies as st

FACTS = {"distribution": "Debian", "distribution_version": "12", "architecture": "x86_64", "gpu_node": {"gpus": []}}
ASKED = {"gpu_stack_request": {"pytorch": "none"}}
GOOD = {"gpu-1": {**ASKED, "ansible_facts": FACTS}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
    | st.sampled_from([10**400, "\x1b[2J", "Debian", "12", "x86_64", "NVIDIA A100-SXM4-80GB", "20b2", "6.1.0-18-amd64", "535.183.01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["gpus", "name", "pci_name", "pci_device_id", "nvswitches", "count", "driver", "kernel", "loaded", "installed",
                         "apt_mirrors", "suite", "driver_owner", "disks", "secure_boot", "dkms", "packages", "selinux"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
MEASURED = st.fixed_dictionaries({}, optional=dict.fromkeys([*FACTS, "gpu_node_state"], JSON))


def stacks(found):
    return [one for one in found["stacks"] if "gpu-1" in one["hosts"]]


ALONE = [one["stack"] for one in plan(GOOD, "2.19.1")["stacks"]]


@settings(max_examples=60, deadline=None)
@given(JSON | MEASURED.map(lambda drawn: {**FACTS, **drawn}))
def test_the_plan_of_the_others_is_made(said):
    hosts = {**GOOD, "gpu-9": {**ASKED, "ansible_facts": said}}
    fit, problems = fitting(hosts, READS)
    assert {one.subject for one in problems} <= {"gpu-9"}
    found = plan(fit, "2.19.1")
    assert [one["stack"] for one in stacks(found)] == ALONE
    assert "\x1b" not in "".join(plan_table(found))


def test_no_escape_sequence_is_shown():
    said = {**FACTS, "gpu_node": {"gpus": [{"index": 0, "name": "\x1b[2JA100\x9b31m", "pci_bus_id": "0"}]}}
    found = plan({"gpu-9": {**ASKED, "ansible_facts": said}}, "2.19.1")
    lines = plan_table(found)
    assert found["refused"] and all(line.replace("\N{REPLACEMENT CHARACTER}", "").isprintable() for line in lines)
