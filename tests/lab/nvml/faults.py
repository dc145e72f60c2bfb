# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by name: a machine that has one, what its kernel's log says, and the verdict that its health must get."""

from dataclasses import dataclass, replace

from . import machines
from .machine import Machine


@dataclass(frozen=True)
class Fault:
    name: str
    machine: Machine
    verdict: str
    log: "str | None" = ""


def said(machine: Machine, number: int, *settings: "tuple[str, str]") -> Machine:
    """The machine with a GPU of whose NVML profile some lines are others."""
    return machine.change(number, settings=(*settings, *machine.gpus[number].settings))


def all_said(machine: Machine, *settings: "tuple[str, str]") -> Machine:
    for number in range(len(machine.gpus)):
        machine = said(machine, number, *settings)
    return machine


def cut(machine: Machine, links: int, *numbers: int) -> Machine:
    """The machine with GPUs that have only the first links."""
    for number in numbers or range(len(machine.gpus)):
        machine = machine.change(number, links=machine.gpus[number].links[:links])
    return machine


def xid(number: int, machine: Machine, gpu: int = 0, rest: str = "pid=1") -> str:
    return f"NVRM: Xid (PCI:{machine.gpus[gpu].address[:-2]}): {number}, {rest}\n"


# A function that the library does not have, and fields that the driver does not know or refuses as invalid.
UNKNOWN_TO_OLD_DRIVERS = (
    ("sram", 13), ("row_histogram", 13), ("inforom_valid", 3), ("temperature_margin", 13), ("processes", 13), ("field.94", 2),
    ("field.230", 2), ("field.194", 3), ("field.82", 3), ("field.6", 3), ("field.161", 3), ("field.162", 3), ("field.163", 3),
)  # fmt: skip


def _answers() -> "list[Fault]":
    hgx, a40 = machines.hgx_h100(), machines.a40_pcie()
    found = [
        Fault("lost before the first question", hgx.change(2, lost=True), "failed"),
        Fault("not among NVML's GPUs", hgx.change(3, hidden=True), "failed"),
        Fault("held by another driver", hgx.change(3, hidden=True, driver="vfio-pci"), "degraded"),
        Fault("no driver", a40.without_driver(), "failed"),
        Fault("no library", a40.with_library(None), "failed"),
        Fault("another library", a40.with_library("550.54.14"), "reboot_required"),
        Fault("log cannot be read", a40, "unknown", None),
    ]
    for code, name in ((15, "lost"), (16, "reset required"), (10, "timeout")):
        for calls in (2, 30, 110):
            found.append(Fault(f"{name} after {calls} answers", hgx.change(5, failing=(code, calls)), "failed"))
    questions = (("power_limit", "power limit"), ("compute_mode", "compute mode"), ("memory_mib", "memory"))
    found += [Fault(f"internal error at {name}", said(a40, 1, (key, "!999")), "degraded") for key, name in questions]
    counters = ("ecc_errors.1.0", "remapped_rows", "throttle_reasons", "persistence_mode", "ecc", "link_speed", "name")
    compared = ("power_limit", "max_clocks", "vbios", "inforom", "memory_mib", "mig", "compute_mode", "fabric_state")
    found += [Fault(f"no permission for {key}", said(a40, 1, (key, "!4")), "unknown") for key in counters]
    return found + [Fault(f"no permission for {key}", said(hgx, 3, (key, "!4")), "unknown") for key in compared]


def _counters() -> "list[Fault]":
    a40, hgx = machines.a40_pcie(), machines.hgx_h100()
    return [
        Fault("uncorrected errors", said(a40, 0, ("ecc_errors.1.0", "2")), "failed"),
        Fault("row remapping pending", said(hgx, 1, ("remapped_rows", "0 1 1 0")), "reboot_required"),
        Fault("row remapping failed", said(hgx, 1, ("remapped_rows", "0 1 0 1")), "failed"),
        Fault("hardware slowdown", said(a40, 0, ("throttle_reasons", "0x8")), "degraded"),
        Fault("thermal slowdown", said(a40, 0, ("throttle_reasons", "0x20")), "degraded"),
        Fault("hardware thermal slowdown", said(a40, 0, ("throttle_reasons", "0x40")), "degraded"),
        Fault("power brake", said(a40, 0, ("throttle_reasons", "0x80")), "degraded"),
        Fault("ECC off after the next reset", said(a40, 0, ("ecc", "1 0")), "reboot_required"),
        Fault("MIG on after the next reset", said(hgx, 0, ("mig", "0 1")), "reboot_required"),
        Fault("narrow PCIe link", a40.change(3, width=8), "degraded"),
        Fault("slow PCIe link at work", said(a40, 0, ("throttle_reasons", "0"), ("pcie_generation", "2")), "degraded"),
    ]


def _condition() -> "list[Fault]":
    """What a GPU says of its own parts; fields by the numbers of nvml.h."""
    a40, hgx, dgx, b200 = machines.a40_pcie(), machines.hgx_h100(), machines.dgx_a100(), machines.hgx_b200()
    v100, tray = machines.v100_cube_mesh(), machines.gb200_tray()
    found = [
        Fault("SRAM above its threshold", said(hgx, 2, ("sram", "1 3 0")), "degraded"),
        Fault("SRAM of Ampere above its threshold", said(dgx, 7, ("sram", "1 0 9")), "degraded"),
        Fault("a bank without spare rows", said(hgx, 1, ("row_histogram", "639 0 0 0 1")), "degraded"),
        Fault("all banks without spare rows", said(a40, 1, ("row_histogram", "0 0 0 0 640")), "degraded"),
        Fault("InfoROM corrupted", said(a40, 2, ("inforom_valid", "!14")), "degraded"),
        Fault("InfoROM of all corrupted", all_said(hgx, ("inforom_valid", "!14")), "degraded"),
        Fault("hot by T.Limit", said(hgx, 0, ("temperature_margin", "0")), "degraded"),
        Fault("beyond T.Limit", said(tray, 3, ("temperature_margin", "-3")), "degraded"),
        Fault("hot by degrees", said(a40, 0, ("temperature", "91")), "degraded"),
        Fault("at its slowdown temperature", said(v100, 0, ("temperature", "92")), "degraded"),
        Fault("hot memory", said(dgx, 0, ("field.82", "95")), "degraded"),
        Fault("many PCIe replays", said(hgx, 6, ("field.94", "4000000000")), "degraded"),
        Fault("many PCIe replays of an older link", said(v100, 6, ("field.94", "90000000")), "degraded"),
        Fault("recovery of NVLink 5", said(b200, 4, ("field.215.17", "1")), "degraded"),
    ]
    links = (("recovery", 162), ("replay", 161))
    found += [Fault(f"one {name} of NVLink 4", said(hgx, 4, (f"field.{n}.7", "1")), "degraded") for name, n in links]
    links = (("recovery", 59), ("replay", 52))
    found += [Fault(f"one {name} of older NVLinks", said(dgx, 4, (f"field.{n}", "1")), "degraded") for name, n in links]
    actions = (
        (1, "failed"),
        (2, "failed"),
        (3, "failed"),
        (4, "failed"),
        (5, "degraded"),
        (6, "failed"),
        (7, "failed"),
        (8, "degraded"),
    )
    found += [Fault(f"recovery action {n}", said(hgx, 5, ("field.230", str(n))), verdict) for n, verdict in actions]
    questions = ("sram", "row_histogram", "inforom_valid", "temperature_margin", "field.94", "field.215", "field.230")
    found += [Fault(f"no permission for {key}", said(b200, 3, (key, "!4")), "unknown") for key in questions]
    questions = ("temperature", "temperature_threshold.1", "field.82", "field.52", "field.59")
    return found + [Fault(f"no permission for {key}", said(dgx, 3, (key, "!4")), "unknown") for key in questions]


def process(pid: int, cgroup: str, state: str = "S (sleeping)", comm: str = "python3") -> "dict[str, str]":
    """The files of a process below /proc."""
    files = {"status": f"Name:\t{comm}\nState:\t{state}\n", "cgroup": f"0::{cgroup}\n", "comm": f"{comm}\n",
             f"task/{pid}/status": f"State:\t{state}\n"}  # fmt: skip
    return {f"proc/{pid}/{name}": text for name, text in files.items()}


SESSION = "/user.slice/user-1000.slice/session-%s.scope"


def _processes() -> "list[Fault]":
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


EDAC = "sys/devices/system/edac/mc/"


def oom(seconds: "int | None", process: str = "python3") -> str:
    """The line of the kernel's log for a process that it killed; seconds: since boot."""
    prefix = "" if seconds is None else f"3,99,{seconds}000000,-;"
    return f"{prefix}Out of memory: Killed process 4711 ({process}) total-vm:5424564kB, anon-rss:255676kB\n"


def _host() -> "list[Fault]":
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
    found = [Fault(name, a40.with_files(what), verdict) for name, verdict, what in files]
    lines = [
        ("killed for lack of memory", "degraded", oom(a40.uptime - 600)),
        ("killed for lack of memory, in a journal", "degraded",
         f"[{a40.uptime - 600}.000100] gpu-7 kernel: Out of memory: Killed process 12 (sshd) total-vm:1kB\n"),
        ("killed for lack of memory, by an older kernel", "degraded", "Out of memory: Kill process 7 (a) score 9 or sacrifice child\n"),
        ("uncorrected error in a process", "failed", "4,1,5,-;mce: Uncorrected hardware memory error in user-access at af34214200\n"),
        ("uncorrected error of a controller", "failed",
         "4,1,5,-;EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x0)\n"),
        ("fatal hardware error", "degraded", "4,1,5,-;{1}[Hardware Error]: event severity: fatal\n"),
        ("recoverable hardware error", "degraded", "4,1,5,-;{2}[Hardware Error]: event severity: recoverable\n"),
    ]  # fmt: skip
    return found + [Fault(name, hgx, verdict, line) for name, verdict, line in lines]


def _fabric() -> "list[Fault]":
    hgx, dgx, b200, tray = machines.hgx_h100(), machines.dgx_a100(), machines.hgx_b200(), machines.gb200_tray()
    bare = replace(hgx, nvswitches=(), gpus=tuple(
        replace(gpu, links=tuple(("unknown", None) for dummy in gpu.links[1:])) for gpu in hgx.gpus
    ))  # fmt: skip
    found = [
        Fault("one GPU lacks a link", cut(dgx, 11, 4), "degraded"),
        Fault("one GPU lacks all links", cut(hgx, 0, 4), "degraded"),
        Fault("a mesh lacks links alike", cut(machines.v100_cube_mesh(), 5), "degraded"),
        Fault("half a bridge on both ends", cut(machines.a40_pcie(), 2, 0, 1), "degraded"),
        Fault("all lack a link to what NVML does not name", bare, "degraded"),
        Fault("one slow link", said(hgx, 3, ("link_speed.5", "13281")), "degraded"),
        Fault("all links slow", all_said(tray, ("link_speed", "26562")), "degraded"),
        Fault("fabric not started", said(hgx, 0, ("fabric_state", "1")), "failed"),
        Fault("fabric in progress", said(tray, 0, ("fabric_state", "2")), "failed"),
        Fault("registration failed", said(tray, 0, ("fabric_status", "999")), "failed"),
        Fault("two partitions", said(tray, 0, ("fabric_clique", "7")), "degraded"),
        Fault("fabric unhealthy", said(tray, 0, ("fabric_summary", "2")), "failed"),
        Fault("fabric of limited capacity", said(tray, 0, ("fabric_summary", "3")), "degraded"),
    ]
    for machine in (hgx, dgx, b200, tray):
        found += [Fault(f"all of {machine.name} lack {lost} links", cut(machine, len(machine.gpus[0].links) - lost), "degraded")
                  for lost in (1, len(machine.gpus[0].links))]  # fmt: skip
    masks = ((1, "degraded"), (1 << 2, "degraded"), (1 << 4, "failed"), (1 << 6, "degraded"), (2 << 14, "degraded"))
    masks += tuple((value << 8, "failed") for value in range(2, 9))
    return found + [
        Fault(f"fabric mask {mask:#x}", said(tray, 1, ("fabric_health", str(mask))), verdict) for mask, verdict in masks
    ]


def _peers() -> "list[Fault]":
    hgx, a40 = machines.hgx_h100(), machines.a40_pcie()
    settings = (
        ("power_limit", "500000"), ("max_clocks", "1755 1755 2619"), ("vbios", "96.00.61.00.01"), ("inforom", "G520.0200.00.04"),
        ("memory_mib", "65247"), ("mig", "1 1"), ("ecc", "0 0"), ("compute_mode", "3"),
    )  # fmt: skip
    return [
        *(Fault(f"{key} unlike seven others", said(hgx, 3, (key, value)), "degraded") for key, value in settings),
        Fault("power limit unlike three others", said(a40, 2, ("power_limit", "200000")), "degraded"),
    ]


def _log() -> "list[Fault]":
    hgx = machines.hgx_h100()
    switch, gpu = hgx.nvswitches[0][-1], hgx.gpus[0].address
    numbers = {"degraded": (14, 63, 92, 121, 157, 171, 999),
               "failed": (46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 159, 168)}  # fmt: skip
    lines = [
        ("Xid of a MIG instance", "failed", f"NVRM: Xid (PCI:{gpu[:-2]} GPU-I:05): 95, pid=1\n"),
        ("fatal event of NVLink 5", "failed", xid(149, hgx, 0, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1)")),
        ("event of NVLink 5", "degraded", xid(149, hgx, 0, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 08 (0x1)")),
        (
            "event of NVLink 5 that is ignored",
            "degraded",
            xid(149, hgx, 0, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x026001c6)"),
        ),
        ("reset demanded", "failed", xid(154, hgx, 0, "GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)")),
        (
            "reboot demanded",
            "failed",
            xid(154, hgx, 0, "GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)"),
        ),
        ("IMEX demanded", "degraded", xid(154, hgx, 0, "GPU recovery action changed from 0x0 (None) to 0x5 (x)")),
        ("fatal SXid", "failed", f"nvidia-nvswitch0: SXid (PCI:{switch}): 20034, Fatal, Link 30 LTSSM Fault Up\n"),
        ("SXid", "degraded", f"nvidia-nvswitch0: SXid (PCI:{switch}): 12028, Non-fatal, Link 32 egress\n"),
        ("off the bus without an Xid", "failed", f"NVRM: GPU {gpu}: GPU has fallen off the bus.\n"),
        (
            "off the bus at the start",
            "failed",
            f"NVRM: The NVIDIA GPU {gpu}\nNVRM: (PCI ID: 10de:2330)\nNVRM: fallen off the bus\n",
        ),
        ("initialisation failed", "degraded", f"NVRM: GPU {gpu}: RmInitAdapter failed! (0x62:0x40:2192)\n"),
    ]
    found = [Fault(name, hgx, verdict, log) for name, verdict, log in lines]
    return found + [
        Fault(f"Xid {number}", hgx, verdict, xid(number, hgx)) for verdict, some in numbers.items() for number in some
    ]


def faults() -> "list[Fault]":
    return [*_answers(), *_counters(), *_condition(), *_processes(), *_host(), *_fabric(), *_peers(), *_log()]


def _working() -> "list[Fault]":
    """Processes that belong to something that runs, or of which nobody can tell."""
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


def _well_around() -> "list[Fault]":
    """What the machine around the GPUs says that is no fault of it."""
    a40 = machines.a40_pcie()
    lines = {
        "a job beyond its own memory": oom(a40.uptime - 60).replace("Out", "Memory cgroup out"),
        "killed long ago": oom(a40.uptime - 7200),
        "corrected machine checks": "4,1,5,-;mce: [Hardware Error]: Machine check events logged\n"
        "4,2,6,-;[Hardware Error]: Corrected error, no action required.\n4,3,7,-;{1}[Hardware Error]: event severity: corrected\n",
    }
    files = {
        "corrected memory errors": {EDAC + "mc0/ce_count": "1200\n"},
        "variables of NCCL that override nothing": {
            "root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\nNCCL_P2P_DISABLE=0\n",
            "root/etc/environment": "NCCL_DEBUG=WARN\n",
        },
    }
    found = [Fault(name, a40, "ok", line) for name, line in lines.items()]
    return found + [Fault(name, a40.with_files(what), "ok") for name, what in files.items()]


def healthy() -> "list[Fault]":
    """Machines that are well, in the quiet and with a log that tells nothing of this node now."""
    hgx, dgx, a40 = machines.hgx_h100(), machines.dgx_a100(), machines.a40_pcie()
    loaded = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    demand = xid(154, hgx, 0, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    taken_back = xid(154, hgx, 0, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
    strangers = "NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.\nnvidia-nvswitch0: SXid (PCI:0000:99:00.0): 1, Fatal, x\n"
    return [
        *(Fault(make.__name__, make(), "ok") for make in machines.MACHINES),
        *(Fault(f"Xid {number} of an application", hgx, "ok", xid(number, hgx)) for number in (13, 31, 43, 45, 68, 94)),
        Fault("before the driver's load", hgx, "ok", xid(79, hgx) + demand + loaded),
        Fault("cured by a reset", hgx, "ok", xid(48, hgx) + demand + taken_back),
        Fault("of other hosts", hgx, "ok", strangers),
        Fault("no bridges", cut(a40, 0), "ok"),
        Fault("part of a board", cut(replace(dgx, gpus=dgx.gpus[:4], nvswitches=dgx.nvswitches[:3]), 6), "ok"),
        Fault("an older driver", all_said(hgx, ("fabric_version", "0"), ("link_speed", "!3")), "ok"),
        Fault(
            "half of them set otherwise",
            said(said(a40, 0, ("power_limit", "200000")), 1, ("power_limit", "200000")),
            "ok",
        ),
        Fault("no firmware told", all_said(hgx, ("vbios", "!3"), ("inforom", "!3"), ("max_clocks", "!3")), "ok"),
        Fault("firmware told by some", said(hgx, 0, ("vbios", "!3"), ("inforom", "!13"), ("max_clocks", "!3")), "ok"),
        Fault(
            "hot and well", all_said(hgx, ("temperature_margin", "3"), ("temperature", "84"), ("field.82", "94")), "ok"
        ),
        Fault("hot in degrees and well", all_said(dgx, ("temperature", "89"), ("field.82", "94")), "ok"),
        *_working(),
        *_well_around(),
        Fault("some PCIe replays", all_said(hgx, ("field.94", "1000")), "ok"),
        Fault("CRC errors that links corrected", said(hgx, 1, ("field.163.3", "250")), "ok"),
        Fault(
            "rows remapped long ago",
            said(
                hgx,
                1,
                ("remapped_rows", "3 2 0 0"),
                ("row_histogram", "637 2 1 0 0"),
                ("field.6", "2"),
                ("sram", "0 1 0"),
            ),
            "ok",
        ),
        Fault(
            "none of the newer questions",
            all_said(hgx, *((key, f"!{code}") for key, code in UNKNOWN_TO_OLD_DRIVERS)),
            "ok",
        ),
        Fault("power cap and idle", all_said(a40, ("throttle_reasons", "0x5")), "ok"),
    ]
