# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each component says of a node that was not examined, and of one that is to have nothing of it: whole comparisons."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall import compare as firewall
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring import compare as monitoring
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl import compare as nccl
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos import compare as qos
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma import compare as rdma
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning import compare as tuning

CONF = "/etc/nccl.conf"
UNMEASURED = [
    (firewall, "firewall", "firewall", "as declared", "rules"),
    (monitoring, "monitoring", "files", "as declared", "files"),
    (nccl, "nccl", CONF, "as decided", "conf"),
    (qos, "qos", "qos", "as declared", "shares"),
    (rdma, "rdma", "rdma", "as declared", "link"),
    (tuning, "tuning", "tuning", "as declared", "sysctl"),
]
UNWANTED = [
    (firewall.compare_absent, "firewall", "firewall", "as it was", "changed", Remedy.APPLY, "rules"),
    (monitoring.compare_unwanted, "monitoring", "files", "no exporters", "exporters", Remedy.APPLY, "files"),
    (nccl.compare_unwanted, "nccl", CONF, "as it was", "ours", Remedy.APPLY, "conf"),
    (qos.compare_absent, "qos", "qos", "as it was", "shaped", Remedy.APPLY, "shares"),
    (rdma.compare_unset, "rdma", "rdma", "as it was", "set up", Remedy.APPLY, "fabric"),
    (tuning.compare_untuned, "tuning", "tuning", "as it was", "tuned", Remedy.APPLY, "sysctl"),
]


@pytest.mark.parametrize(("module", "component", "subject", "desired", "kind"), UNMEASURED)
def test_a_node_that_was_not_examined(module, component, subject, desired, kind):
    expected = Comparison(component, subject, desired, "", Status.UNKNOWN, Remedy.MEASURE, kind)
    assert module.compare_unmeasured() == [expected]


@pytest.mark.parametrize(("compare", "component", "subject", "desired", "observed", "remedy", "kind"), UNWANTED)
def test_a_node_that_still_has_what_it_is_not_to_have(compare, component, subject, desired, observed, remedy, kind):
    assert compare(True) == [Comparison(component, subject, desired, observed, Status.UNWANTED, remedy, kind)]
    assert compare(False) == []
