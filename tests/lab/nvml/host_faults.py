# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the machine around the GPUs: processes that are left over, memory, and NCCL's variables."""

import json

from . import machines
from .fault import Fault, said


def process(pid: int, cgroup: str, state: str = "S (sleeping)", comm: str = "python3") -> "dict[str, str]":
    """Return the files of a process below /proc."""
    files = {"status": f"Name:\t{comm}\nState:\t{state}\n", "cgroup": f"0::{cgroup}\n", "comm": f"{comm}\n",
             f"task/{pid}/status": f"State:\t{state}\n"}  # fmt: skip
    return {f"proc/{pid}/{name}": text for name, text in files.items()}


SESSION = "/user.slice/user-1000.slice/session-%s.scope"


def processes() -> "list[Fault]":
    hgx = machines.hgx_h100()
    busy = said(hgx, 2, ("processes", "4711:71680"))
    closing = {"root/run/systemd/sessions/8": "UID=1000\nACTIVE=0\nSTATE=closing\n"}
    several = said(said(hgx, 2, ("processes", "4711:71680 4712:512")), 5, ("processes", "4712:512"))
    return [
        Fault("a process that is gone holds memory", busy, "degraded"),
        Fault(
            "a zombie holds memory",
            busy.with_files(process(4711, "/system.slice/job.service", "Z (zombie)")),
            "degraded",
        ),
        Fault("a process of a session that is gone", busy.with_files(process(4711, SESSION % 6)), "degraded"),
        Fault(
            "a process of a session that closes", busy.with_files({**process(4711, SESSION % 8), **closing}), "degraded"
        ),
        Fault("one of two processes is gone", several.with_files(process(4711, SESSION % 7)), "degraded"),
        Fault("no permission for processes", said(hgx, 2, ("processes", "!4")), "unknown"),
    ]


SYNCHRONISED, NANOSECONDS, UNSYNCHRONISED = 0x0001, 0x2000, 0x0040  # STA_* of linux/timex.h


def clock(offset: int, status: int = SYNCHRONISED, state: int = 0) -> "dict[str, str]":
    """Return the answer of adjtimex on the recorded machine."""
    return {"proc/adjtimex.json": f'{{"state": {state}, "status": {status}, "offset": {offset}}}\n'}


EDAC = "sys/devices/system/edac/mc/"


def mounts(*faults: "str | None") -> "dict[str, str]":
    """Return the answers of the network file systems of the recorded machine."""
    found = [
        {
            "point": f"/data{number}",
            "type": "nfs4",
            "source": "nfs-1:/data",
            "fault": fault,
            "words": f"nfs4: {fault or 'well'}",
        }
        for number, fault in enumerate(faults)
    ]
    return {"proc/network_mounts.json": json.dumps(found) + "\n"}


def oom(seconds: "int | None", process: str = "python3") -> str:
    """Return the line of the kernel's log for a process that it killed; seconds: since boot."""
    prefix = "" if seconds is None else f"3,0,{seconds}000000,-;"
    return f"{prefix}Out of memory: Killed process 4711 ({process}) total-vm:5424564kB, anon-rss:255676kB\n"


def host() -> "list[Fault]":
    a40, hgx = machines.a40_pcie(), machines.hgx_h100()
    conf = {"root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\n"}
    files = [
        ("uncorrected memory error", "failed", {EDAC + "mc0/ue_count": "1\n"}),
        ("uncorrected memory error of another controller", "failed", {EDAC + "mc3/ue_count": "12\n"}),
        ("memory errors that cannot be read", "unknown", {EDAC + "mc0/ue_count": "\n"}),
        ("a variable of NCCL goes before the file", "degraded", {**conf, "root/etc/environment": "NCCL_IB_HCA=mlx5_1\n"}),
        ("a unit's variable goes before the file", "degraded",
         {**conf, "root/etc/systemd/system/slurmd.service.d/a.conf": "[Service]\nEnvironment=NCCL_IB_HCA=mlx5_1\n"}),
    ]  # fmt: skip
    for name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"):
        files.append(
            (f"{name} left over in a profile", "degraded", {"root/etc/profile.d/nccl.sh": f"export {name}=1\n"})
        )
        files.append((f"{name} left over in nccl.conf", "degraded", {"root/etc/nccl.conf": f"{name}=1\n"}))
    files += [
        ("a clock that is 51 ms off", "degraded", clock(51000)),
        ("a clock that is 51 ms off, in nanoseconds", "degraded", clock(-51000000, SYNCHRONISED | NANOSECONDS)),
        ("an NVMe disk that is dead", "degraded", {"sys/class/nvme/nvme0/state": "dead\n"}),
        ("an NVMe disk that warns", "degraded",
         {"sys/class/nvme/nvme0/state": "live\n", "sys/class/nvme/nvme0/hwmon3/temp1_alarm": "1\n"}),
        ("an NVMe disk that warns an older kernel", "degraded",
         {"sys/class/nvme/nvme0/state": "live\n", "sys/class/nvme/nvme0/hwmon/hwmon3/temp1_alarm": "1\n"}),
        ("a disk that is offline", "degraded", {"sys/block/sda/device/state": "offline\n"}),
        ("an array without a member", "degraded", {"sys/block/md0/md/degraded": "1\n"}),
        ("an array that lost a member and has no other for it", "degraded", {"sys/block/md0/md/array_state": "broken\n"}),
        ("an array that a missing member keeps from starting", "degraded",
         {"sys/block/md127/md/array_state": "inactive\n", "sys/block/md127/md/metadata_version": "1.2\n"}),
        ("a file system with errors", "degraded", {"sys/fs/ext4/nvme0n1p2/errors_count": "3\n"}),
        ("a network file system that hangs", "degraded", mounts(None, "silent")),
        ("a network file system whose handle is stale", "degraded", mounts("ESTALE")),
    ]  # fmt: skip
    found = [Fault(name, a40.with_files(what), verdict) for name, verdict, what in files]
    lines = [
        ("uncorrected error in a process", "failed", "4,0,5,-;mce: Uncorrected hardware memory error in user-access at af34214200\n"),
        ("uncorrected error of a controller", "failed",
         "4,0,5,-;EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x0)\n"),
        ("fatal hardware error", "degraded", "4,0,5,-;{1}[Hardware Error]: event severity: fatal\n"),
        ("recoverable hardware error", "degraded", "4,0,5,-;{2}[Hardware Error]: event severity: recoverable\n"),
    ]  # fmt: skip
    found += [
        Fault("less memory than declared", a40, "degraded", limits={"memory_mib": 2000000}),
        Fault("fewer processors than declared", a40, "degraded", limits={"cpu_count": 256}),
        Fault("processors that are switched off", a40.with_files({"sys/devices/system/cpu/online": "0-126\n"}), "degraded",
              limits={"cpu_count": 128}),
        Fault("memory of which nobody knows", a40.with_files({"proc/meminfo": "\n"}), "unknown", limits={"memory_mib": 1}),
        Fault("many corrected memory errors", a40.with_files({EDAC + "mc0/ce_count": "9\n"}), "degraded",
              limits={"max_corrected_memory_errors": 8}),
    ]  # fmt: skip
    return found + [Fault(name, hgx, verdict, line) for name, verdict, line in lines]


def working() -> "list[Fault]":
    """Processes that belong to something that runs, or of which that is not known."""
    busy = said(machines.hgx_h100(), 2, ("processes", "4711:71680"))
    threads = {"proc/4711/task/4790/status": "State:\tR (running)\n"}
    places = {
        "a session": process(4711, SESSION % 7), "a unit": process(4711, "/system.slice/train.service"),
        "a user's unit": process(4711, "/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope"),
        "a job": process(4711, "/system.slice/slurmstepd.scope/job_12/step_0/user/task_0", "D (disk sleep)"),
        "MPS": process(4711, SESSION % 6, comm="nvidia-cuda-mps"),
        "its threads": {**process(4711, "/system.slice/train.service", "Z (zombie)"), **threads},
    }  # fmt: skip
    return [Fault(f"a process of {name}", busy.with_files(files), "ok") for name, files in places.items()]


def well_around() -> "list[Fault]":
    """Return the reports of the machine around the GPUs that are not its fault."""
    a40 = machines.a40_pcie()
    lines = {
        "killed for lack of memory": oom(a40.uptime - 600),
        "killed for lack of memory, in a journal": f"[{a40.uptime - 600}.000100] gpu-7 kernel: Out of memory: Killed process 12 (sshd) total-vm:1kB\n",
        "killed for lack of memory, by an older kernel": "Out of memory: Kill process 7 (a) score 9 or sacrifice child\n",
        "a job beyond its own memory": oom(a40.uptime - 60).replace("Out", "Memory cgroup out"),
        "killed long ago": oom(a40.uptime - 7200),
        "corrected machine checks": "4,0,5,-;mce: [Hardware Error]: Machine check events logged\n"
        "4,2,6,-;[Hardware Error]: Corrected error, no action required.\n4,3,7,-;{1}[Hardware Error]: event severity: corrected\n",
    }
    files = {
        "network file systems that answer": mounts(None, None),
        "corrected memory errors": {EDAC + "mc0/ce_count": "1200\n"},
        "variables of NCCL that override nothing": {
            "root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\nNCCL_P2P_DISABLE=0\n",
            "root/etc/environment": "NCCL_DEBUG=WARN\n",
        },
    }
    files.update({
        "a clock that is kept in time": clock(49000), "a clock in nanoseconds": clock(49000000, SYNCHRONISED | NANOSECONDS),
        "a clock that nothing keeps in time": clock(900000, UNSYNCHRONISED, 5),
        "disks that are well": {
            "sys/class/nvme/nvme0/state": "live\n", "sys/class/nvme/nvme0/hwmon3/temp1_alarm": "0\n",
            "sys/class/nvme/nvme1/state": "resetting\n", "sys/block/sda/device/state": "running\n", "sys/block/md0/md/degraded": "0\n",
            "sys/block/md127/md/array_state": "inactive\n", "sys/block/md127/md/metadata_version": "external:imsm\n",
            "sys/fs/ext4/sda1/errors_count": "0\n",
        },
    })  # fmt: skip
    found = [Fault(name, a40, "ok", line) for name, line in lines.items()]
    return found + [Fault(name, a40.with_files(what), "ok") for name, what in files.items()]
