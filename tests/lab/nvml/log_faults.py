# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that the kernel's log tells of GPUs."""

from . import machines
from .fault import Fault, said, xid

# (name, the driver's words of Xid 154, verdict)
DEMANDS = (
    ("reset demanded", "0x1 (PF FLR)", "failed"),
    ("reboot demanded", "0x2 (OS Reboot)", "failed"),
    ("peer traffic to be drained", "0x3 (Drain P2P)", "failed"),
    ("drain and reset demanded", "0x4 (Drain and Reset)", "failed"),
    ("IMEX demanded", "0x5 (x)", "degraded"),
    ("unknown demand", "0x9 (x)", "degraded"),
)


def probes() -> "list[Fault]":
    """Return machines whose driver could not set a GPU up; that NVML does not show it is another check."""
    hgx = machines.hgx_h100()
    gpu, loaded = (
        hgx.gpus[3].address,
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build\n",
    )
    causes = {
        "off the bus while the driver was loaded": "has\nNVRM: fallen off the bus and is not responding to commands.",
        "not supported by the driver": "is not supported by open\nNVRM: nvidia.ko because it does not include the required GPU",
    }
    logs = {
        name: f"NVRM: The NVIDIA GPU {gpu}\nNVRM: (PCI ID: 10de:26b5) installed in this system {cause}\n"
        for name, cause in causes.items()
    }
    logs["without address space"] = (
        f"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:{gpu})\n"
    )
    failed = f"nvidia: probe of {gpu} failed with error -1\nNVRM: The NVIDIA probe routine failed for 1 device(s).\n"
    hidden, alone = hgx.change(3, hidden=True), {"skip_checks": ["gpu_answers"]}
    return [Fault(name, hidden, "failed", text + failed + loaded, alone) for name, text in logs.items()]


def log() -> "list[Fault]":
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
        ("fatal SXid", "failed", f"nvidia-nvswitch0: SXid (PCI:{switch}): 20034, Fatal, Link 30 LTSSM Fault Up\n"),
        ("SXid", "degraded", f"nvidia-nvswitch0: SXid (PCI:{switch}): 12028, Non-fatal, Link 32 egress\n"),
        ("off the bus without an Xid", "failed", f"NVRM: GPU {gpu}: GPU has fallen off the bus.\n"),
        (
            "off the bus at the start",
            "failed",
            f"NVRM: The NVIDIA GPU {gpu}\nNVRM: (PCI ID: 10de:2330)\nNVRM: fallen off the bus\n",
        ),
        ("no answer of the firmware", "failed", "NVRM: GPU6 _kgspLogRpcTimeout: ********* GSP Timeout **********\n"),
        ("initialisation failed", "degraded", f"NVRM: GPU {gpu}: RmInitAdapter failed! (0x62:0x40:2192)\n"),
    ]
    found = [Fault(name, hgx, verdict, log) for name, verdict, log in lines]
    found += probes()
    modules = {"sys/module/nvidia/refcnt": "9\n"}
    found += [
        Fault("Xid 159 without unified memory", hgx.with_files(modules), "degraded", xid(159, hgx)),
        Fault(
            "Xid 159 with unified memory",
            hgx.with_files({**modules, "sys/module/nvidia_uvm/refcnt": "4\n"}),
            "failed",
            xid(159, hgx),
        ),
        Fault("Xid 45 while a fabric is not started", said(hgx, 0, ("fabric_state", "1")), "failed", xid(45, hgx)),
        Fault(
            "Xid 45 while a fabric that nobody judges is not started",
            said(hgx, 0, ("fabric_state", "1")),
            "degraded",
            xid(45, hgx),
            {"skip_checks": ["fabric"]},
        ),
        Fault("Xid of an application that is to be told", hgx, "degraded", xid(13, hgx), {"ignored_xids": []}),
    ]
    change = "GPU recovery action changed from 0x0 (None) to "
    found += [Fault(name, hgx, verdict, xid(154, hgx, 3, change + words)) for name, words, verdict in DEMANDS]
    return found + [
        Fault(f"Xid {number}", hgx, verdict, xid(number, hgx)) for verdict, some in numbers.items() for number in some
    ]
