# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log says, in the words of real machines."""

import errno
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import kernel_log

# As /dev/kmsg gives them: priority, sequence number, microseconds, flags.
LOG = """6,1234,5678901,-;nvidia 0000:07:00.0: enabling device
3,1300,99999,-;NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
3,1301,99999,-;NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.
3,1302,99999,-;NVRM: Xid (PCI:0001:b1:00): 31, pid=77, name=python
3,1303,99999,-;NVRM: Xid (0000:03:00): 14, Channel 00000001
"""
LOADED = "4,1400,99999,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Jun  5 01:50:46 UTC 2025\n"
LOADED_OPEN = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)\n"
RECOVERY = "NVRM: Xid (PCI:0000:07:00): 154, GPU recovery action changed from %s to %s\n"


def found(text):
    return [(one["kind"], one["address"], one["number"]) for one in kernel_log.find_events(text)]


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen", ("xid", "0000:07:00", 79)),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", ("xid", "0000:03:00", 14)),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7, name=python, Contained", ("xid", "0000:01:00", 94)),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 13, pid=7", ("xid", "0000:01:00", 13)),
        ("NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1)", ("xid", "0009:01:00", 149)),
        (RECOVERY % ("0x0 (None)", "0x1 (GPU Reset Required)"), ("recovery", "0000:07:00", 1)),
        (RECOVERY % ("0x0 (None)", "0x1 (PF FLR)"), ("recovery", "0000:07:00", 1)),
        (RECOVERY % ("0x0 (None)", "0x2 (OS Reboot)"), ("recovery", "0000:07:00", 2)),
        ("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack", ("sxid", "0000:c3:00", 24007)),
        ("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress", ("sxid", "0000:05:00", 12028)),
        ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", ("off_bus", "0000:01:00", None)),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", ("off_bus", "0000:01:00", None)),
        (
            "3,9,9,-;NVRM: The NVIDIA GPU 0000:5d:00.0\\x0aNVRM: (PCI ID: 10de:2330)\\x0aNVRM: installed in this system has"
            "\\x0aNVRM: fallen off the bus and is not responding to commands.",
            ("off_bus", "0000:5d:00", None),
        ),
        (
            "NVRM: The NVIDIA GPU 0000:5d:00.0\nNVRM: (PCI ID: 10de:2330)\nNVRM: installed in this system has\n"
            "NVRM: fallen off the bus and is not responding to commands.",
            ("off_bus", "0000:5d:00", None),
        ),
        (
            "[  102.334455] gpu-7 kernel: NVRM: The NVIDIA GPU 0000:5d:00.0\n                             NVRM: (PCI ID: 10de:2330)\n"
            "                             NVRM: installed in this system has\n                             NVRM: fallen off the bus",
            ("off_bus", "0000:5d:00", None),
        ),
        ("[99.000001] gpu-7 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1", ("xid", "0000:07:00", 79)),
        ("NVRM: GPU 0000:04:00.0: RmInitAdapter failed! (0x62:0x40:2192)", ("init", "0000:04:00", None)),
        ("nvidia: probe of 0000:5d:00.0 failed with error -1", ("probe", "0000:5d:00", None)),
        ("nvidia 0000:67:00.0: probe with driver nvidia failed with error -1", ("probe", "0000:67:00", None)),
        (
            "NVRM: The NVIDIA GPU 0000:00:04.0 (PCI ID: 10de:1db1)\nNVRM: installed in this system is not supported by open\n"
            "NVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).",
            ("unsupported", "0000:00:04", None),
        ),
        (
            "[ 5.5] NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c58)\n"
            "               NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            ("unsupported", "0000:02:00", None),
        ),
        (
            "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:0000:67:00.0)",
            ("bar", "0000:67:00", None),
        ),
        ("NVRM: GPU6 _kgspLogRpcTimeout: ********* GSP Timeout **********", ("gsp", None, 6)),
        ("NVRM: GPU0 _kgspLogGspTimeout: ********* GSP Timeout **********", ("gsp", None, 0)),
        ("NVRM: GPU1 _kgspLogRpcSanityCheckFailure: GPU1 sanity check failed 0xf waiting for RPC response from GSP.", ("gsp", None, 1)),
        ("NVRM: _kgspLogXid119: ***************** GSP Timeout ************", ("gsp", None, None)),
    ],
)  # fmt: skip
def test_every_line_is_one_event(line, event):
    assert found(line) == [event]


@pytest.mark.parametrize(
    "line",
    [
        LOADED,
        "NVRM: GPU 0000:04:00.0: rm_init_adapter failed, device minor number 0",
        "nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 22013, Severity 0 Engine instance 60 Sub-engine instance 00",
        "NVRM: GPU Board Serial Number: 1322321043914",
        "systemd[1]: the words Xid (PCI:0000:01:00): 79 in somebody else's line",
        RECOVERY % ("0x1 (GPU Reset Required)", "0x0 (None)"),
        "NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 8 heartbeat 0 diff 6070 timeout 5200",
        "NVRM: GPU0 _kgspProcessRpcEvent: Attempted to process RPC event from GPU0: 0x101a",
        "nvidia 0000:07:00.0: enabling device (0140 -> 0142)",
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x00000000 (PCI:0001:00.0)",
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    ],
)
def test_other_lines_are_none(line):
    assert found(line) == []


def test_a_gpu_is_not_blamed_for_the_next_line():
    text = "NVRM: GPU 0000:04:00.0: something\nNVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
    assert found(text) == [("xid", "0000:05:00", 79)]


def test_events_are_found_once_each_in_the_order_of_the_log():
    assert found(LOG) == [("xid", "0000:07:00", 79), ("xid", "0001:b1:00", 31), ("xid", "0000:03:00", 14)]


@pytest.mark.parametrize("loaded", [LOADED, LOADED_OPEN])
def test_what_was_before_the_last_load_of_the_driver_does_not_count(loaded):
    assert found(LOG + loaded) == []
    assert found(loaded + LOG) == found(LOG)
    assert found(LOG + loaded + "NVRM: Xid (PCI:0000:03:00): 48, pid=1") == [("xid", "0000:03:00", 48)]


# Of NVIDIA/NVSentinel#155, and of a machine whose log starts with the module of NVLink.
GONE = """[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0
               NVRM: (PCI ID: 10de:26b5) installed in this system has
               NVRM: fallen off the bus and is not responding to commands.
[ 1843.439600] nvidia: probe of 0000:b3:00.0 failed with error -1
[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).
"""
BEGUN = "[ 1840.1] nvidia-nvlink: Nvlink Core is being initialized, major device number 239\n"
TOLD = [("off_bus", "0000:b3:00", None), ("probe", "0000:b3:00", None)]
UNKNOWN_TO_IT = (
    "NVRM: The NVIDIA GPU 0000:5d:00.0 (PCI ID: 10de:1db1)\nNVRM: installed in this system is not supported by open\n"
)


@pytest.mark.parametrize("loaded", [LOADED, LOADED_OPEN])
@pytest.mark.parametrize("begun", ["", BEGUN], ids=["without the start", "with the start"])
def test_what_a_load_told_before_it_said_so_counts(loaded, begun):
    assert found(begun + GONE + loaded) == TOLD
    assert found(LOG + begun + GONE + loaded) == TOLD
    assert found(begun + GONE + UNKNOWN_TO_IT + loaded) == [*TOLD, ("unsupported", "0000:5d:00", None)]
    # The next load set it up.
    assert found(begun + GONE + loaded + begun + loaded) == []
    assert found(begun + GONE + loaded + begun + GONE + loaded) == TOLD
    assert found(LOG + loaded + begun + GONE + loaded) == TOLD


def test_a_load_that_set_up_no_gpu_never_says_so():
    assert found(LOG + BEGUN + GONE + "NVRM: None of the NVIDIA devices were initialized.\n") == TOLD
    assert found(BEGUN + GONE + BEGUN + LOADED) == []


def test_what_no_load_tells_is_of_the_time_before_it():
    off = "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.\n"
    closed = "NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c58)\nNVRM: installed in this system requires use of the NVIDIA open\n"
    assert found(off + closed) == [("off_bus", "0000:01:00", None), ("unsupported", "0000:02:00", None)]
    assert found(off + closed + LOADED) == []


SWITCH = "nvidia-nvswitch: Probing device 0000:%s:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000\n"
SXID = "nvidia-nvswitch%d: SXid (PCI:0000:0%d:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"


def test_a_reset_of_the_switches_is_one_of_all_gpus():
    told = LOG + SXID % (0, 5) + SXID % (1, 6)
    switches = [("sxid", "0000:05:00", 20034), ("sxid", "0000:06:00", 20034)]
    assert found(told) == [*found(LOG), *switches]
    assert found(told + SWITCH % "05") == switches[1:]
    assert found(told + SWITCH % "05" + SWITCH % "06") == []
    assert found(told + SWITCH % "05" + SWITCH % "06" + LOG) == found(LOG)
    assert found(SWITCH % "08" + GONE) == TOLD


@pytest.mark.parametrize("line", ["enabling device (0140 -> 0142)", "reset done"])
def test_a_gpu_that_was_probed_anew_or_reset_starts_afresh(line):
    others = [("xid", "0001:b1:00", 31), ("xid", "0000:03:00", 14)]
    demand = RECOVERY % ("0x0 (None)", "0x1 (GPU Reset Required)")
    line = f"4,1400,99999,-;nvidia 0000:07:00.0: {line}\n"
    assert found(LOG + demand + line) == others
    assert found(LOG + line + LOG) == found(LOG)
    assert found(LOG + line.replace("nvidia ", "nvme ")) == found(LOG)


@pytest.mark.parametrize(
    "line",
    [
        "[ 5000.100000] pci 0000:07:00.0: [10de:2330] type 00 class 0x030200\n",
        "6,1500,5000100000,-;pci 0000:07:00.0: [10de:2330] type 00 class 0x030200 PCIe Endpoint\n",
    ],
)
def test_a_gpu_that_came_back_onto_the_bus_starts_afresh(line):
    """As after remove and rescan below /sys/bus/pci, or a slot that was switched off and on."""
    assert found(LOG + line) == [("xid", "0001:b1:00", 31), ("xid", "0000:03:00", 14)]
    assert found(line + LOG) == found(LOG)
    assert found(LOG + line.replace("[10de:2330] type 00", "[15b3:1021] type 00")) == found(LOG)


def test_the_log_itself_says_which_number_a_gpu_has():
    timeout = "NVRM: GPU4 _kgspLogRpcTimeout: ****** GSP Timeout *****\n"
    xid = "NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=python, Timeout after 45s of waiting for RPC response from GPU4 GSP! Expected x\n"
    assert found(timeout + xid) == [("gsp", "0000:9b:00", 4), ("xid", "0000:9b:00", 119)]
    assert found(timeout + xid + "nvidia 0000:9b:00.0: reset done\n") == []
    (event,) = kernel_log.find_events(timeout, {4: "0000:9b:00"})
    assert event["address"] == "0000:9b:00"


def test_a_demand_that_was_taken_back_takes_what_led_to_it_along():
    demand, back = RECOVERY % ("0x0 (None)", "0x1 (PF FLR)"), RECOVERY % ("0x1 (PF FLR)", "0x0 (None)")
    others = [("xid", "0001:b1:00", 31), ("xid", "0000:03:00", 14)]
    assert found(LOG + demand) == [*found(LOG), ("recovery", "0000:07:00", 1)]
    assert found(LOG + demand + back) == others
    assert found(LOG + demand + back + "NVRM: Xid (PCI:0000:07:00): 94, x") == [*others, ("xid", "0000:07:00", 94)]


def test_the_last_demand_counts():
    more = RECOVERY % ("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)")
    assert found(RECOVERY % ("0x0 (None)", "0x1 (GPU Reset Required)") + more) == [("recovery", "0000:07:00", 2)]


def test_a_log_that_is_missing_is_none(tmp_path):
    assert kernel_log.read(str(tmp_path / "kmsg")) is None


def test_a_log_that_fails_on_reading_is_none_and_not_empty(tmp_path):
    """A directory can be opened and not read, as /dev/kmsg where a security module forbids it."""
    assert kernel_log.read(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([b"a", errno.EAGAIN], "a"),
        ([b"a", errno.EPIPE, b"b", errno.EAGAIN], "ab"),
        ([b"a", errno.EIO], None),
        ([errno.EPERM], None),
    ],
)
def test_what_ends_a_log(tmp_path, monkeypatch, answers, text):
    left = list(answers)

    def read(_descriptor, _size):
        answer = left.pop(0)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer

    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(os, "read", read)
    assert kernel_log.read(str(tmp_path / "kmsg")) == text
    assert left == []


def test_a_log_is_read_to_its_end(tmp_path):
    (tmp_path / "kmsg").write_text(LOG)
    assert kernel_log.read(str(tmp_path / "kmsg")) == LOG


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("6,0,0,-;Linux version 6.1.0\n" + LOG, True),
        (LOG, False),
        (LOG + LOADED, True),
        (LOG + BEGUN, True),
        ("", True),
    ],
)
def test_a_ring_is_whole_if_it_goes_back_to_boot_or_to_the_driver(text, whole):
    assert kernel_log.is_whole(text) is whole


@pytest.mark.parametrize(
    ("ring", "journal", "text"),
    [
        (LOG + LOADED, "must not be asked", LOG + LOADED),
        (LOG, "older", "older"),
        (LOG, None, LOG),
        (None, "older", "older"),
        (None, None, None),
    ],
)
def test_the_journal_is_asked_where_the_ring_has_wrapped(monkeypatch, ring, journal, text):
    asked = []
    monkeypatch.setattr(kernel_log, "read_ring", lambda path: ring)
    monkeypatch.setattr(kernel_log, "read_journal", lambda: asked.append(1) or journal)
    assert kernel_log.read(kernel_log.RING) == text
    assert bool(asked) is (ring != LOG + LOADED)
    asked.clear()
    assert kernel_log.read("/recorded/kmsg") == ring
    assert not asked


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("printf 'a\\nb\\n'", "a\nb"),
        ("exit 0", None),
        ("echo some; exit 1", None),
        ("sleep 60", None),
    ],
)
def test_a_journal_that_cannot_be_asked_is_none(script, text):
    assert kernel_log.read_journal(["sh", "-c", script], 1) == text
    assert kernel_log.read_journal(["/no/such/program"]) is None
