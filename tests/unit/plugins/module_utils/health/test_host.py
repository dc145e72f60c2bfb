# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine around the GPUs, read from recorded trees and a recorded log."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import host_reading
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host_log import find_host_events
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host_reading import read_host
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.storage import network_mounts
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.host_faults import EDAC, oom

HOST = {"memory_size", "cpu_count", "memory_errors", "machine_checks", "oom_kills", "nccl_settings"}
UNCORRECTED = "Uncorrected hardware memory error in user-access at af34214200"
MOUNTS = '[{"point": "/data", "type": "nfs4", "source": "nfs-1:/data", "fault": %s, "words": %s}]\n'
UPTIME = machines.a40_pcie().uptime


def told(found):
    return [
        (one["check"], one["expected"], one["measured"], one["severity"], one["action_class"])
        for one in found["findings"]
    ]


@pytest.fixture
def trees(tmp_path):
    """The trees of a recorded machine."""

    def made(files=None, machine=None):
        recording.record((machine or machines.a40_pcie()).with_files(files or {}), tmp_path)
        return [FileTree(str(tmp_path / name)) for name in ("sys", "proc", "root")]

    return made


def test_what_is_read(trees):
    files = {EDAC + "mc0/ue_count": "1\n", EDAC + "mc0/dimm0/dimm_ue_count": "1\n", EDAC + "power/control": "auto\n",
             "root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\n"}  # fmt: skip
    found = read_host(*trees(files))
    assert found["uptime_seconds"] == UPTIME + 0.25
    assert (found["memory_mib"], found["cpus"], found["crashed"]) == (1031513, 128, {})
    assert found["memory_errors"] == [
        {"name": "mc0", "uncorrected": 1, "corrected": 0, "dimms": ["CPU_SrcID#0_MC#0_Chan#0_DIMM#0"]}
    ]
    assert found["nccl"]["variables"] == {"NCCL_IB_HCA": "=mlx5_0"}


def test_a_machine_that_tells_nothing(tmp_path):
    found = read_host(*[FileTree(str(tmp_path))] * 3)
    assert (found["uptime_seconds"], found["memory_mib"], found["cpus"]) == (None, None, None)
    assert (found["memory_errors"], found["crashed"]) == ([], {})


@pytest.mark.parametrize(
    ("files", "limits", "expected"),
    [
        ({}, {"memory_mib": 1031513, "cpu_count": 128}, None),
        ({}, {"memory_mib": 1031514}, ("memory_size", "at least 1031514 MiB", "1031513 MiB", "degraded", "isolate")),
        ({}, {"cpu_count": 129}, ("cpu_count", "at least 129 processors", "128 processors", "degraded", "configure")),
        ({"proc/meminfo": "?"}, {"memory_mib": 1}, ("memory_size", "at least 1 MiB", None, "unknown", "monitor")),
        ({"proc/meminfo": "?"}, {}, None),
        ({EDAC + "mc1/ue_count": "2\n"}, {}, ("memory_errors", "none uncorrected", "2 on mc1", "failed", "isolate")),
        ({EDAC + "mc0/ue_count": "3\n", EDAC + "mc0/dimm0/dimm_ue_count": "3\n"}, {},
         ("memory_errors", "none uncorrected", "3 on mc0, CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "failed", "isolate")),
        ({EDAC + "mc0/ue_count": "EIO"}, {}, ("memory_errors", "none uncorrected", None, "unknown", "monitor")),
        ({EDAC + "mc0/ce_count": "900\n"}, {}, None),
        ({EDAC + "mc0/ce_count": "900\n"}, {"max_corrected_memory_errors": 899},
         ("memory_errors", "at most 899 corrected", "900 corrected on mc0", "degraded", "monitor")),
        ({"root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\n", "root/etc/environment": "A=1\nNCCL_IB_HCA=mlx5\n"}, {},
         ("nccl_settings", "set nowhere else", "NCCL_IB_HCA in /etc/environment, line 2", "degraded", "configure")),
        ({"root/etc/profile.d/x.sh": "export NCCL_P2P_DISABLE=1\n"}, {},
         ("nccl_settings", "not set", "NCCL_P2P_DISABLE in /etc/profile.d/x.sh, line 1", "degraded", "configure")),
        ({"proc/network_mounts.json": MOUNTS % ('"silent"', '"nfs4 of nfs-1:/data does not answer within 5 s"')}, {},
         ("network_mounts", "well", "/data: nfs4 of nfs-1:/data does not answer within 5 s", "degraded", "monitor")),
        ({"proc/network_mounts.json": MOUNTS % ('"ESTALE"', '"nfs4 of nfs-1:/data answers with ESTALE"')}, {},
         ("network_mounts", "well", "/data: nfs4 of nfs-1:/data answers with ESTALE", "degraded", "monitor")),
        ({"proc/network_mounts.json": MOUNTS % ("null", '"nfs4 of nfs-1:/data"')}, {}, None),
        ({"root/etc/nccl.conf": "NCCL_IB_DISABLE=1\n"}, {},
         ("nccl_settings", "not set", "NCCL_IB_DISABLE in /etc/nccl.conf", "degraded", "configure")),
        ({"root/etc/environment": "NCCL_IB_DISABLE=0\n"}, {}, None),
        ({"root/etc/nccl.conf": "NCCL_IB_DISABLE=0\nNCCL_DEBUG=WARN\n", "root/etc/environment": "NCCL_SOCKET_IFNAME=eth0\n"}, {}, None),
    ],
)  # fmt: skip
def test_files(examine, files, limits, expected):
    assert told(examine(machines.a40_pcie().with_files(files), **limits)) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("log", "limits", "kinds"),
    [
        (oom(UPTIME - 60), {}, {"oom_kills"}),
        (oom(UPTIME - 3599), {}, {"oom_kills"}),
        (oom(UPTIME - 3700), {}, set()),
        (oom(UPTIME - 3700), {"oom_minutes": 90}, {"oom_kills"}),
        (oom(UPTIME - 60), {"oom_minutes": 0}, set()),
        (oom(UPTIME + 900), {}, set()),  # of a machine that is up for longer
        (oom(None), {}, {"oom_kills"}),
        (f"[{UPTIME - 30}.000100] gpu-7 kernel: Out of memory: Killed process 12 (python3) total-vm:1kB\n", {}, {"oom_kills"}),
        (oom(UPTIME - 60).replace("Out", "Memory cgroup out"), {}, set()),
    ],
)  # fmt: skip
def test_what_was_killed_lately_is_a_note_and_the_node_is_well(examine, log, limits, kinds):
    found = examine(machines.a40_pcie(), log=log, **limits)
    assert (found["verdict"], found["findings"]) == ("ok", [])
    assert {(one["check"], one["severity"]) for one in found["notes"]} == {(kind, "note") for kind in kinds}
    measured = {one["check"]: one["measured"] for one in found["judged"]}
    assert measured["oom_kills"] == ("1 killed: python3" if kinds else "none")


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("6,1,2000000,-;Out of memory: Killed process 2446 (gnome shell) total-vm:5424564kB", ("oom", "gnome shell", 2.0)),
        ("Out of memory: Kill process 7 (a) score 9 or sacrifice child", ("oom", "a", None)),
        ("Out of memory (oom_kill_allocating_task): Killed process 7 (a) total", ("oom", "a", None)),
        ("[  896.25] h kernel: EDAC MC0: 1 UE memory read error on x", ("memory", "EDAC MC0: 1 UE memory read error on x", 896.25)),
        (f"mce: {UNCORRECTED}", ("memory", UNCORRECTED, None)),
        ("{1}[Hardware Error]: event severity: recoverable", ("hardware", "recoverable", None)),
    ],
)  # fmt: skip
def test_lines(line, event):
    (found,) = find_host_events(f"x\n{line}\ny")
    assert (found["kind"], found["what"], found["seconds"]) == event


@pytest.mark.parametrize(
    "line",
    [
        "Memory cgroup out of memory: Killed process 12 (python3) total-vm:1kB",
        "mce: [Hardware Error]: Machine check events logged",
        "[Hardware Error]: Deferred error, no action required.",
        "{1}[Hardware Error]: event severity: corrected",
        "EDAC MC0: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
        "EDAC MC0: Giving out device to module i10nm_edac controller",
        "NVRM: event severity: fatal",
    ],
)
def test_lines_that_are_no_fault(line):
    assert find_host_events(line) == []


def test_without_a_log_its_checks_are_left_to_the_one_that_says_so(examine):
    found = examine(machines.a40_pcie(), log=None)
    assert [one[0] for one in told(found)] == ["xid"]
    assert not {"oom_kills", "machine_checks"} & {entry["check"] for entry in found["judged"]}


@pytest.mark.parametrize(
    ("reader", "check"),
    [
        ("read_memory", "memory_size"),
        ("read_cpus", "cpu_count"),
        ("read_memory_errors", "memory_errors"),
        ("read_nccl", "nccl_settings"),
        ("read_aer", "aer_errors"),
        ("read_clock", "kernel_clock"),
        ("read_disks", "disks"),
        ("read_nvme", "nvme_health"),
        ("read_mounts", "network_mounts"),
    ],
)
def test_a_reader_that_crashes_leaves_its_check_unknown(examine, monkeypatch, reader, check):
    def crash(*dummy):
        raise TypeError(reader)

    monkeypatch.setattr(host_reading, reader, crash)
    found = examine(machines.a40_pcie(), memory_mib=1, cpu_count=1)
    assert [(one[0], one[3]) for one in told(found)] == [(check, "unknown")]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (
            True,
            [
                {
                    "point": "/data",
                    "type": "nfs4",
                    "source": "nfs-1:/data",
                    "fault": None,
                    "words": "nfs4 of nfs-1:/data",
                }
            ],
        ),
        (False, []),
    ],
)
def test_mounts_are_asked_only_where_there_are_some(monkeypatch, seen, expected):
    mounted = {"point": "/data", "type": "nfs4", "source": "nfs-1:/data", "fault": None}
    monkeypatch.setattr(host_reading, "has_network_mounts", lambda tree: seen)
    monkeypatch.setattr(network_mounts, "read_network_mounts", lambda tree: [mounted])
    assert host_reading.read_mounts(FileTree("/proc")) == expected


def test_a_host_without_gpus_is_not_judged(examine):
    machine = machines.no_gpu().with_files({EDAC + "mc0/ue_count": "1\n"})
    assert examine(machine)["judged"] == []
