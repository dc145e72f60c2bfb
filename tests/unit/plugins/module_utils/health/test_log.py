# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From lines of the kernel's log to findings: the class of each Xid, and the context in which it stands."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import xid_table
from ansible_collections.allreduce.gpu.plugins.module_utils.health.log import judge_log
from ansible_collections.allreduce.gpu.plugins.module_utils.health.xid_table import CLASSES, ROWS, class_of
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import ADDRESS, LIMITS, node

SWITCH = "0000:c3:00.0"
OWN = ADDRESS[:-2]


def told(text, ignored=None, **gpu):
    machine = {**node(gpu), "nvswitches": {"count": 1, "pci_bus_ids": [SWITCH]}}
    findings = judge_log(machine, text, {**LIMITS, "ignored_xids": ignored})["findings"]
    return [as_told(one) for one in findings]


def as_told(one):
    return one["gpu"], one["measured"], one["action_class"], one["severity"]


def xid(number, rest="pid=1", address=OWN):
    return f"NVRM: Xid (PCI:{address}): {number}, {rest}\n"


def around(text, uvm=None, findings=(), ignored=None):
    """The classes of what is found on a machine of which something else is known, too."""
    machine = node({"name": "NVIDIA H100 80GB HBM3"}, findings=findings)
    found = judge_log(machine, text, {**LIMITS, "ignored_xids": ignored}, uvm)["findings"]
    return [(one["measured"], one["action_class"], one["severity"]) for one in found]


# The catalog's immediate action, sampled over the table; see its sources.
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("application", [8, 13, 31, 43, 45, 68, 94, 139]),
        ("monitor", [14, 63, 92, 121, 157, 162, 1, 500]),
        ("reset", [46, 48, 62, 64, 74, 95, 109, 119, 120, 136, 140, 143, 155, 156, 158]),
        ("reboot", [79, 151, 168]),
        ("isolate", [54]),
    ],
)
def test_classes(name, numbers):
    assert {class_of(number) for number in numbers} == {name}
    for number in numbers:
        wanted = ("GPU0", f"Xid {number}", name, CLASSES[name][0])
        machine = node({"name": "NVIDIA H100 80GB HBM3"})
        found = judge_log(machine, xid(number), LIMITS)
        key, other = ("notes", "findings") if name == "application" else ("findings", "notes")
        assert ([as_told(one) for one in found[key]], found[other]) == ([wanted], [])


@pytest.mark.parametrize(
    ("number", "name", "mig", "expected"),
    [
        (64, "NVIDIA A100-SXM4-80GB", False, "reboot"),
        (64, "NVIDIA A100-SXM4-80GB", True, "reboot"),
        (64, "NVIDIA H100 80GB HBM3", False, "reset"),
        (95, "NVIDIA A100-PCIE-40GB", False, "reboot"),
        (95, "NVIDIA A100-PCIE-40GB", True, "reset"),
        (95, "NVIDIA RTX A1000", False, "reset"),
        (95, None, False, "reset"),
    ],
)
def test_what_a_number_means_on_some_gpus(number, name, mig, expected):
    found = told(xid(number), name=name, mig={"current": mig, "pending": mig})
    assert found == [("GPU0", f"Xid {number}", expected, "failed")]
    assert {row[1] for row in xid_table.CONTEXT} <= set(xid_table.XIDS) and all(row[4] for row in xid_table.CONTEXT)


def test_every_row_has_a_class_a_source_and_its_own_numbers():
    assert {name for name, _xids, _source in ROWS} == set(CLASSES)
    assert all(source for _name, _xids, source in ROWS)
    numbers = [number for _name, xids, _source in ROWS for number in xids]
    assert len(numbers) == len(set(numbers))
    assert not set(numbers) & {*xid_table.NVLINK5, xid_table.RECOVERY_CHANGED}


def test_a_node_is_never_drained_for_a_number_that_nobody_knows():
    assert {class_of(number) for number in range(1, 1000) if number not in xid_table.XIDS} == {"monitor"}
    assert CLASSES["monitor"][0] == "degraded"


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "reset"),
        ("NETIR_BER_EVENT Nonfatal XC0 i0 Link 08 (0x00000000)", "monitor"),
        ("NETIR_BER_EVENT Non-fatal XC0 i0 Link 08 (0x00000000)", "monitor"),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000)", "reset"),
        # Causes of a link that is down which the catalog ignores, although they are fatal; those bits mean that nowhere else.
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", "monitor"),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x028001c6 0x00000000)", "monitor"),
        ("NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x026001c6 0x00000001)", "reset"),
        ("no severity", "monitor"),
    ],
)
@pytest.mark.parametrize("number", [144, 149, 150])
def test_events_of_nvlink_5_are_told_apart_by_their_severity_and_not_by_their_number(number, rest, name):
    assert told(xid(number, rest)) == [("GPU0", f"Xid {number}", name, CLASSES[name][0])]


@pytest.mark.parametrize(
    ("action", "name"), [(1, "reset"), (2, "reboot"), (3, "reset"), (4, "reset"), (5, "monitor"), (6, "reset"), (7, "reboot"), (42, "monitor")]
)  # fmt: skip
def test_what_the_driver_asks_for(action, name):
    (one,) = told(xid(154, f"GPU recovery action changed from 0x0 (None) to 0x{action:x} (Words)"))
    assert one[2:] == (name, CLASSES[name][0])


def test_what_the_driver_asks_for_goes_before_the_number():
    text = xid(48) + xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    findings = judge_log(node(), text, LIMITS)["findings"]
    assert [one["action"] for one in findings] == ["reboot the node"] * 2
    assert judge_log(node(), xid(48), LIMITS)["findings"][0]["action"] == CLASSES["reset"][1]


@pytest.mark.parametrize("line", [xid(79, address="0000:99:00"), "NVRM: GPU 0000:99:00.0: RmInitAdapter failed! (0x1)",
                                  "nvidia-nvswitch0: SXid (PCI:0000:99:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
                                  f"nvidia-nvswitch0: SXid (PCI:{ADDRESS}): 20034, Fatal, Link 30 LTSSM Fault Up"])  # fmt: skip
def test_what_is_not_of_this_node_does_not_condemn_it(line):
    assert told(line) == []


def test_an_error_of_a_switch_is_no_error_of_a_gpu():
    fatal = f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): 20034, Fatal, Link 30 LTSSM Fault Up\n"
    other = f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)\n"
    assert told(fatal) == [(None, "SXid 20034 of NVSwitch 0000:c3:00", "reset", "failed")]
    assert told(other) == [(None, "SXid 12028 of NVSwitch 0000:c3:00", "monitor", "degraded")]
    machine = {**node(), "nvswitches": {"count": 1, "pci_bus_ids": [SWITCH]}}
    actions = [one["action"] for one in judge_log(machine, xid(74) + fatal, LIMITS)["findings"]]
    assert len(set(actions)) == 1, "Xid 74 beside an SXid leads to the switch"
    actions = [one["action"] for one in judge_log(machine, xid(79) + fatal, LIMITS)["findings"]]
    assert len(set(actions)) == 2, "another Xid keeps its own action"


def test_a_gpu_that_is_gone_without_an_xid():
    assert told("NVRM: GPU 0000:07:00.0: GPU has fallen off the bus.") == [
        ("GPU0", "fallen off the bus", "reboot", "failed")
    ]


GONE = f"""NVRM: The NVIDIA GPU {ADDRESS}
NVRM: (PCI ID: 10de:26b5) installed in this system has
NVRM: fallen off the bus and is not responding to commands.
nvidia: probe of {ADDRESS} failed with error -1
NVRM: The NVIDIA probe routine failed for 1 device(s).
NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build
"""
UNSUPPORTED = GONE.replace("fallen off the bus and is not responding to commands.", "").replace(
    "has", "is not supported by open"
)
BAR = (
    f"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:{ADDRESS})\n"
    + "".join(GONE.splitlines(keepends=True)[3:])
)
PROBE = "".join(GONE.splitlines(keepends=True)[3:])
TIMEOUT = "NVRM: GPU%s _kgspLogRpcTimeout: ********* GSP Timeout **********\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GONE, ("fallen off the bus", "reboot", "failed")),
        (UNSUPPORTED, ("not supported by this driver", "configure", "failed")),
        (BAR, ("the firmware gave it no address space", "configure", "failed")),
        (PROBE, ("the driver could not set the GPU up", "reboot", "failed")),
    ],
    ids=["gone", "unsupported", "bar", "probe"],
)
def test_a_gpu_that_the_driver_could_not_set_up_is_told_once(text, expected):
    assert told(text, seen_by=["pci"]) == [("GPU0", *expected)]
    assert told(text.replace(ADDRESS, "0000:99:00.0"), seen_by=["pci"]) == []
    assert told(text + text.splitlines()[-1], seen_by=["pci"]) == []
    # One that it reached later.
    later = told(text)[0][2:]
    assert later == (("reboot", "failed") if text == GONE else ("monitor", "degraded"))


@pytest.mark.parametrize("text", [TIMEOUT % 0, "NVRM: _kgspLogXid119: ****** GSP Timeout ******\n"])
def test_a_gpu_whose_firmware_does_not_answer_is_not_well(text):
    assert told(text) == [("GPU0", "the GPU's firmware (GSP) does not answer", "reset", "failed")]
    assert told(text + xid(119)) == told(text + xid(119), [48]) == [("GPU0", "Xid 119", "reset", "failed")]
    assert told(text, [119, 120]) == []
    assert told(text + "NVRM: loading NVIDIA UNIX Open Kernel Module\n") == []


# Of scitix/sichek#51 (older drivers do not number the GPU) and NVIDIA/open-gpu-kernel-modules#1045.
NEEDED = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2874\n",
    "NVRM: GPU0 nvCheckOkFailedNoLog: Check failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from _gpu(pGpu) @ a.c:151\n",
)


@pytest.mark.parametrize("text", NEEDED)
def test_a_gpu_that_needs_a_reset_is_told_without_an_xid(text):
    told_of = [("GPU0", "the driver refuses what it is asked for until the GPU is reset", "reset", "failed")]
    assert told(text) == told(text * 9) == told(text + xid(31)) == told_of
    assert [one[1] for one in told(text + xid(119))] == ["Xid 119"]
    demand = xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    assert [one[1] for one in told(text + demand)] == ["Xid 154: reset the GPU"]
    assert told(text + f"nvidia {ADDRESS}: reset done\n") == []
    assert told(text + "NVRM: loading NVIDIA UNIX Open Kernel Module\n") == []
    assert told(text.replace("RESET_REQUIRED", "TIMEOUT")) == []
    assert told(text.replace("GPU0", "GPU6")) == ([] if "GPU0" in text else told_of)


def test_the_firmware_of_a_gpu_that_is_not_here_condemns_no_node():
    assert told(TIMEOUT % 6) == []


def test_what_a_reset_healed_does_not_count():
    probing = f"nvidia-nvswitch: Probing device {SWITCH}, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000\n"
    assert told(xid(48) + probing) == []
    assert told(xid(48) + f"nvidia {ADDRESS}: reset done\n") == []
    assert [one[1] for one in told(xid(48) + probing + xid(79))] == ["Xid 79"]


def test_a_failed_initialisation_counts_less_on_a_gpu_that_answers():
    line = "NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x62:0x40:2192)"
    assert told(line)[0][2:] == ("monitor", "degraded")
    assert told(line, seen_by=["pci"])[0][2:] == ("reboot", "failed")


@pytest.mark.parametrize(
    ("ignored", "numbers"), [(None, [48]), ([], [31, 48]), ([48], [31]), ([31, 48], [])], ids=["unset", "none", "48", "both"]
)  # fmt: skip
def test_what_the_user_ignores(ignored, numbers):
    assert [one[1] for one in told(xid(31) + xid(48), ignored)] == [f"Xid {number}" for number in numbers]


def test_what_has_no_number_is_not_ignored_with_the_recovery_actions():
    line = "NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x62:0x40:2192)"
    assert told(line, ignored=[xid_table.RECOVERY_CHANGED]) == told(line) != []


def test_a_log_that_cannot_be_read_is_unknown():
    assert told(None) == [(None, None, "configure", "unknown")]


@pytest.mark.parametrize(
    ("log", "measured"),
    [
        ("6,0,1,-;Linux version 6.1.0\n", "no events"),
        ("6,812,1,-;usb 1-1: new device\n", "no events in what is left of the log"),
        ("6,812,1,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05\n", "no events"),
        ("", "no events"),
    ],
)
def test_no_more_is_claimed_than_the_log_goes_back(log, measured):
    assert judge_log(node(), log, LIMITS)["measured"] == measured


def test_a_log_that_has_lost_its_beginning_is_unknown():
    line = "6,812,1,-;usb 1-1: new device\n"
    assert told(line) == [(None, "no events in what is left of the log", "configure", "unknown")]
    # What is left still counts.
    assert [one[3] for one in told(line + xid(79))] == ["failed", "unknown"]
    assert told("6,0,1,-;Linux version\n") == told(line + "NVRM: loading NVIDIA UNIX Open Kernel Module\n") == []


FABRIC = [{"code": "fabric_unhealthy", "subject": None, "detail": {}}]


@pytest.mark.parametrize(("text", "findings", "expected"), [
    (xid(45), (), []),  # what an application leaves that was ended
    (xid(45), FABRIC, [("Xid 45", "configure", "degraded")]),
    (xid(45) + xid(45, "pid=2"), FABRIC, [("Xid 45", "configure", "degraded")]),
    (xid(45) + xid(13), FABRIC, []),
    (xid(45) + xid(13, address="0000:99:00"), FABRIC, [("Xid 45", "configure", "degraded")]),  # of another GPU
    (xid(45) + xid(48), FABRIC, [("Xid 48", "reset", "failed")]),
    (xid(45), [{"code": "acs_redirect", "subject": None, "detail": {}}], []),
])  # fmt: skip
def test_xid_45_alone_beside_a_fabric_that_is_not_well(text, findings, expected):
    assert around(text, findings=findings) == expected


@pytest.mark.parametrize(
    ("uvm", "expected"), [(True, ("reset", "failed")), (None, ("reset", "failed")), (False, ("monitor", "degraded"))]
)
def test_xid_159_asks_for_unified_memory(uvm, expected):
    assert around(xid(159), uvm) == [("Xid 159", *expected)]


def test_numbers_that_are_named_are_ignored_in_every_context():
    assert around(xid(45) + xid(159), True, FABRIC, ignored=[45, 159]) == []
    assert around(xid(45), ignored=[13]) == [("Xid 45", "application", "degraded")]
