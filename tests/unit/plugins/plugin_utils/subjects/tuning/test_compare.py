# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is tuned to beside what was decided for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.tuning import (
    Arguments,
    Fresh,
    Interface,
    Limits,
    Line,
    Logind,
    ProcessLimit,
    Switch,
    Tuned,
    TunedNode,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.compare import (
    compare_tuning,
    compare_unmeasured,
    compare_untuned,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import load

TUNED_NODE = TunedNode(
    sysctl={"vm.swappiness": Switch("10", "60")}, switches={"governor": Switch("performance", "schedutil")}
)
ENOUGH, TOO_LOW = ProcessLimit("unlimited", "unlimited"), ProcessLimit(8388608, 8388608, 812)
AS_PLANNED = (Status.AS_PLANNED, Remedy.NONE)


def compared(node, **variables):
    wanted = request({"tuning_state": "present", "tuning_transport": "rdma", "tuning_limits": {}, **variables})
    return {one.subject: one for one in compare_tuning(decide(wanted, node, GpuNode(), load()), wanted, node)}


def verdict(node, subject, **variables):
    one = compared(node, **variables)[subject]
    return one.status, one.remedy


@pytest.mark.parametrize(
    ("node", "subject", "expected"),
    [
        (TUNED_NODE, "vm.swappiness", AS_PLANNED),
        (replace(TUNED_NODE, sysctl={"vm.swappiness": Switch("60", "60")}), "vm.swappiness", (Status.DIFFERS, Remedy.APPLY)),
        (TUNED_NODE, "governor", AS_PLANNED),
        (replace(TUNED_NODE, switches={"governor": Switch("powersave, performance", "x")}), "governor", (Status.DIFFERS, Remedy.APPLY)),
        (
            replace(TUNED_NODE, sysctl_lines=(Line("/etc/sysctl.d/99-x.conf", 1, "vm.swappiness", "60"),)),
            "vm.swappiness", (Status.DIFFERS, Remedy.OVERRIDE),
        ),
    ],
    ids=["as_declared", "sysctl_differs", "governor", "one_processor_differs", "overridden_at_the_next_boot"],
)  # fmt: skip
def test_values(node, subject, expected):
    assert verdict(node, subject) == expected


def test_the_file_that_overrides_is_named():
    node = replace(TUNED_NODE, sysctl_lines=(Line("/etc/sysctl.d/99-x.conf", 7, "vm.swappiness", "60"),))
    assert compared(node)["vm.swappiness"].observed == "10, and 60 by line 7 of /etc/sysctl.d/99-x.conf"


@pytest.mark.parametrize(
    ("logind", "expected"),
    [
        (Logind("no", True), AS_PLANNED),
        (Logind("yes", True), (Status.DIFFERS, Remedy.APPLY)),
        (Logind("no", True, Line("/etc/systemd/logind.conf.d/99-x.conf", 2, "RemoveIPC", "yes")), (Status.DIFFERS, Remedy.OVERRIDE)),
    ],
)  # fmt: skip
def test_the_daemons_own_word_counts(logind, expected):
    assert verdict(replace(TUNED_NODE, logind=logind), "RemoveIPC") == expected


@pytest.mark.parametrize(
    ("running", "configured", "expected"),
    [
        (("ro", "iommu=pt"), ("ro", "iommu=pt"), AS_PLANNED),
        (("ro", "iommu=pt"), None, AS_PLANNED),
        (("ro", "iommu=pt"), ("ro",), (Status.DIFFERS, Remedy.APPLY)),
        (("ro",), ("ro", "iommu=pt"), (Status.DIFFERS, Remedy.BOOT)),
        (("ro",), ("ro",), (Status.MISSING, Remedy.APPLY)),
        (("iommu=pt,x",), None, (Status.MISSING, Remedy.APPLY)),
    ],
)
def test_a_kernel_has_its_arguments_now_and_at_the_next_boot(running, configured, expected):
    node = replace(TUNED_NODE, arguments=Arguments("grubby", running, configured))
    assert verdict(node, "iommu=pt", tuning_kernel_arguments=["iommu=pt"]) == expected


def limits(ceiling=None, fresh=None, **services):
    found = {name.replace("_at_", "@"): {"memlock": one, "nofile": one} for name, one in services.items()}
    return replace(TUNED_NODE, limits=Limits({"memlock": ceiling} if ceiling else {}, found, fresh))


@pytest.mark.parametrize(
    ("node", "subject", "expected"),
    [
        (limits(slurmd=ENOUGH), "memlock of slurmd", AS_PLANNED),
        (limits(slurmd=TOO_LOW), "memlock of slurmd", (Status.DIFFERS, Remedy.RESTART)),
        (limits(user_at_1000=TOO_LOW), "memlock of user@1000", (Status.DIFFERS, Remedy.RESTART)),
        # Where nobody can raise it further, the least of both counts.
        (limits(8388608, slurmd=TOO_LOW), "memlock of slurmd", AS_PLANNED),
        (limits(16777216, slurmd=TOO_LOW), "memlock of slurmd", (Status.DIFFERS, Remedy.RESTART)),
        (limits(fresh=Fresh({"memlock": ENOUGH}, {"memlock": TOO_LOW})), "memlock of a login", AS_PLANNED),
        (limits(fresh=Fresh({}, {"memlock": TOO_LOW})), "memlock of a new service", (Status.DIFFERS, Remedy.APPLY)),
        (limits(fresh=Fresh({}, {})), "memlock of a login", (Status.UNKNOWN, Remedy.MEASURE)),
    ],
)
def test_limits_are_those_of_processes(node, subject, expected):
    assert verdict(node, subject) == expected


def test_a_process_is_named_where_it_must_be_restarted():
    """Everywhere else its number would only make equal nodes differ."""
    fitting, low = ProcessLimit("unlimited", "unlimited", 811), ProcessLimit(8388608, 8388608, 812)
    found = compared(limits(slurmd=fitting, cron=low), tuning_limits={"memlock": "unlimited"})
    assert found["memlock of slurmd"].observed == "unlimited"
    assert found["memlock of cron"].observed == "8388608 (process 812)"


def test_a_service_may_raise_its_open_files_by_itself():
    node = limits(cron=ProcessLimit(1024, 65536), slurmd=ProcessLimit(1024, 65536))
    found = compared(node, tuning_limits={"nofile": 65536}, tuning_limit_services=["slurmd"])
    assert (found["nofile of cron"].differs, found["nofile of slurmd"].differs) == (False, True)


@pytest.mark.parametrize(
    ("tuned", "expected"),
    [
        (Tuned(True, "allreduce", verified=True), {"tuned": False, "tuned-adm verify": False}),
        (Tuned(True, "allreduce", verified=False), {"tuned": False, "tuned-adm verify": True}),
        (Tuned(True, "allreduce"), {"tuned": False}),
        (Tuned(True, "virtual-guest", verified=True), {"tuned": True}),
        (Tuned(False, "virtual-guest"), {}),
    ],
)
def test_tuned_says_itself_whether_its_profile_is_applied(tuned, expected):
    found = compared(replace(TUNED_NODE, tuned=tuned))
    assert {name: one.differs for name, one in found.items() if one.kind == "profile"} == expected


def test_where_tuned_is_in_charge_its_word_counts_for_idle_states():
    switches = {"idle_latency": Switch("0", "0")}
    assert "idle_latency" in compared(replace(TUNED_NODE, switches=switches))
    assert "idle_latency" not in compared(replace(TUNED_NODE, switches=switches, tuned=Tuned(True, "allreduce")))


@pytest.mark.parametrize(("irqs", "differs"), [({"120": "2", "121": "2-3"}, False), ({"120": "0", "121": "3"}, True)])
def test_interrupts(irqs, differs):
    node = replace(
        TUNED_NODE, interfaces={"ens1": Interface(1, "2-3", irqs), "ens2": Interface(None, None, {"1": "0"})}
    )
    found = compared(node, tuning_irq_interfaces=["ens1", "ens2"])
    assert found["ens1"].differs is differs and "ens2" not in found
    assert not differs or found["ens1"].observed == "interrupts 120 elsewhere"


def test_a_node_that_is_not_to_be_tuned():
    assert compare_untuned(False) == []
    assert [(one.status, one.remedy) for one in compare_untuned(True)] == [(Status.UNWANTED, Remedy.APPLY)]


def test_what_was_not_measured_is_unknown():
    assert [one.status for one in compare_unmeasured()] == [Status.UNKNOWN]


def test_the_checks_say_what_to_do():
    found = {one["name"]: one for one in checks(compared(limits(slurmd=TOO_LOW)).values())}
    assert found["tuning_sysctl"]["status"] == found["tuning_switch"]["status"] == "passed"
    assert found["tuning_limit"]["status"] == "failed"
    assert found["tuning_limit"]["reason"] == "memlock of slurmd is 8388608 (process 812) instead of unlimited"
    assert found["tuning_limit"]["fix"] == "restart the service, or end the session, and start it again"


@pytest.mark.parametrize(
    ("running", "configured", "observed", "status", "remedy"),
    [
        (("iommu=pt",), ("iommu=pt",), "set", *AS_PLANNED),
        (("iommu=pt",), (), "set until the next boot", Status.DIFFERS, Remedy.APPLY),
        (("quiet",), ("iommu=pt",), "set at the next boot", Status.DIFFERS, Remedy.BOOT),
        (None, ("iommu=pt",), "set at the next boot", Status.DIFFERS, Remedy.BOOT),
        ((), None, "", Status.MISSING, Remedy.APPLY),
    ],
)
def test_a_kernel_argument_is_compared_whole(running, configured, observed, status, remedy):
    node = replace(TUNED_NODE, arguments=Arguments("grubby", running, configured))
    found = compared(node, tuning_kernel_arguments=["iommu=pt"])["iommu=pt"]
    assert found == Comparison("tuning", "iommu=pt", "set", observed, status, remedy, "argument")


ELSEWHERE = Line("/etc/sysctl.d/99-x.conf", 7, "vm.swappiness", "60")
LOGIND_LATER = Line("/etc/systemd/logind.conf.d/99-x.conf", 2, "RemoveIPC", "yes")
OURS = Tuned(True, "allreduce", verified=True)
ON_NODE = {"ens0": Interface(0, "0-1", {"7": "3"}), "ens1": Interface(1, "2-3", {"120": "0", "121": "2", "122": "0-3"})}
GOVERNOR, RAISED = Switch("powersave", "powersave"), ProcessLimit(1024, 1048576)


@pytest.mark.parametrize(
    ("changed", "variables", "whole"),
    [
        ({}, {}, ("vm.swappiness", "10", "10", *AS_PLANNED, "sysctl")),
        ({"sysctl": {"vm.swappiness": Switch("60", "60")}}, {}, ("vm.swappiness", "10", "60", Status.DIFFERS, Remedy.APPLY, "sysctl")),
        ({"sysctl_lines": (ELSEWHERE,)}, {}, (
            "vm.swappiness", "10", "10, and 60 by line 7 of /etc/sysctl.d/99-x.conf", Status.DIFFERS, Remedy.OVERRIDE, "sysctl",
        )),
        # A later line that says the same is in nobody's way.
        ({"sysctl_lines": (replace(ELSEWHERE, value="10"),)}, {}, ("vm.swappiness", "10", "10", *AS_PLANNED, "sysctl")),
        ({}, {}, ("governor", "performance", "performance", *AS_PLANNED, "switch")),
        ({"switches": {"governor": GOVERNOR}}, {}, ("governor", "performance", "powersave", Status.DIFFERS, Remedy.APPLY, "switch")),
        ({"switches": {"governor": GOVERNOR}, "tuned": OURS}, {}, (
            "governor", "performance", "powersave", Status.DIFFERS, Remedy.APPLY, "switch",
        )),
        ({"logind": Logind("no", True)}, {}, ("RemoveIPC", "no", "no", *AS_PLANNED, "logind")),
        ({"logind": Logind("yes")}, {}, ("RemoveIPC", "no", "yes", Status.DIFFERS, Remedy.APPLY, "logind")),
        ({"logind": Logind("no", True, LOGIND_LATER)}, {}, (
            "RemoveIPC", "no", f"no, and yes by line 2 of {LOGIND_LATER.file}", Status.DIFFERS, Remedy.OVERRIDE, "logind",
        )),
        ({"interfaces": ON_NODE}, {"tuning_irq_interfaces": ["ens1"]}, (
            "ens1", "processors 2-3", "interrupts 120, 122 elsewhere", Status.DIFFERS, Remedy.APPLY, "interrupts",
        )),
        ({"interfaces": {"ens1": Interface(1, "2-3", {"121": "2"})}}, {"tuning_irq_interfaces": ["ens1"]}, (
            "ens1", "processors 2-3", "processors 2-3", *AS_PLANNED, "interrupts",
        )),
        ({"limits": Limits({}, {"slurmd": {"memlock": TOO_LOW}})}, {}, (
            "memlock of slurmd", "unlimited", "8388608 (process 812)", Status.DIFFERS, Remedy.RESTART, "limit",
        )),
        ({"limits": Limits({}, {"slurmd": {"memlock": TOO_LOW}})}, {"tuning_limits": {"memlock": 8388608}}, (
            "memlock of slurmd", "8388608", "8388608", *AS_PLANNED, "limit",
        )),
        ({"limits": Limits({}, {"slurmd": {}})}, {}, ("memlock of slurmd", "unlimited", "", Status.UNKNOWN, Remedy.MEASURE, "limit")),
        ({"limits": Limits(fresh=Fresh({}, {}))}, {}, ("memlock of a login", "unlimited", "", Status.UNKNOWN, Remedy.MEASURE, "limit")),
        # A service may raise its open files by itself, a login gets what it has.
        ({"limits": Limits(fresh=Fresh({}, {"nofile": RAISED}))}, {"tuning_limits": {"nofile": 1048576}}, (
            "nofile of a new service", "1048576", "1048576", *AS_PLANNED, "limit",
        )),
        ({"limits": Limits(fresh=Fresh({"nofile": RAISED}, {}))}, {"tuning_limits": {"nofile": 1048576}}, (
            "nofile of a login", "1048576", "1024", Status.DIFFERS, Remedy.APPLY, "limit",
        )),
        ({"limits": Limits(fresh=Fresh({}, {"nproc": RAISED}))}, {"tuning_limits": {"nproc": 1048576}}, (
            "nproc of a new service", "1048576", "1024", Status.DIFFERS, Remedy.APPLY, "limit",
        )),
        ({"tuned": OURS}, {}, ("tuned", "allreduce", "allreduce", *AS_PLANNED, "profile")),
        ({"tuned": Tuned(True, "balanced")}, {}, ("tuned", "allreduce", "balanced", Status.DIFFERS, Remedy.APPLY, "profile")),
        ({"tuned": Tuned(True)}, {}, ("tuned", "allreduce", "no profile", Status.DIFFERS, Remedy.APPLY, "profile")),
        ({"tuned": OURS}, {}, ("tuned-adm verify", "applied", "applied", *AS_PLANNED, "profile")),
        ({"tuned": replace(OURS, verified=False)}, {}, (
            "tuned-adm verify", "applied", "not applied as a whole", Status.DIFFERS, Remedy.APPLY, "profile",
        )),
    ],
)  # fmt: skip
def test_a_comparison_is_told_whole(changed, variables, whole):
    found = compared(replace(TUNED_NODE, **changed), **variables)
    assert found[whole[0]] == Comparison("tuning", *whole)


def test_a_containers_interrupts_belong_to_its_host():
    node = replace(TUNED_NODE, interfaces=ON_NODE)
    assert "ens1" in compared(node, tuning_irq_interfaces=["ens1"])
    assert "ens1" not in compared(replace(node, container=True), tuning_irq_interfaces=["ens1"])


def test_a_limit_beyond_the_kernels_is_compared_with_what_was_declared():
    """The kernel's own, fs.nr_open, is raised by the same run."""
    node = limits(slurmd=RAISED)
    node = replace(
        node,
        limits=replace(node.limits, ceiling={"nofile": 1048576}),
        sysctl={"fs.nr_open": Switch("1048576", "1048576")},
    )
    variables = {"tuning_sysctl": {"fs.nr_open": 4194304}, "tuning_limits": {"nofile": 2097152}}
    assert compared(node, **variables)["nofile of slurmd"].desired == "2097152"
