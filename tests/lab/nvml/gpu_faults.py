# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that NVML tells of GPUs: those that do not answer, their counters, and what they say of their own parts."""

from . import machines
from .fault import Fault, all_said, said

# A function that the library does not have, and fields that the driver does not know or refuses as invalid.
UNKNOWN_TO_OLD_DRIVERS = (
    ("sram", 13), ("row_histogram", 13), ("inforom_valid", 3), ("temperature_margin", 13), ("processes", 13), ("field.94", 2),
    ("field.193", 3), ("ecc_errors.0.0", 3),
    ("field.230", 2), ("field.194", 3), ("field.82", 3), ("field.6", 3), ("field.161", 3), ("field.162", 3), ("field.163", 3),
)  # fmt: skip


def answers() -> "list[Fault]":
    hgx, a40 = machines.hgx_h100(), machines.a40_pcie()
    found = [
        Fault("lost before the first question", hgx.change(2, lost=True), "failed"),
        Fault("not among NVML's GPUs", hgx.change(3, hidden=True), "failed"),
        Fault("held by another driver", hgx.change(3, hidden=True, driver="vfio-pci"), "degraded"),
        Fault("no driver", a40.without_driver(), "failed"),
        *no_driver(),
        Fault("no library", a40.with_library(None), "failed"),
        Fault("another library", a40.with_library("550.54.14"), "reboot_required"),
        Fault("log cannot be read", a40, "unknown", None),
        Fault("log without its beginning, and no journal", a40, "unknown", "6,812,1,-;usb 1-1: new device\n"),
    ]
    for code, name in ((15, "lost"), (16, "reset required"), (10, "timeout")):
        for calls in (2, 30, 110):
            found.append(Fault(f"{name} after {calls} answers", hgx.change(5, failing=(code, calls)), "failed"))
    for machine in (machines.dgx_a100(), machines.hgx_b200(), machines.gb200_tray()):
        for calls in (0, 20, 100):
            found.append(
                Fault(f"{machine.name} lost after {calls} answers", machine.change(1, failing=(15, calls)), "failed")
            )
    for code, name, verdict in (
        (8, "power cables", "failed"),
        (11, "interrupts", "degraded"),
        (14, "InfoROM", "degraded"),
    ):
        found.append(Fault(f"NVML tells of {name}", said(hgx, 4, ("persistence_mode", f"!{code}")), verdict))
    for key in ("temperature_margin", "sram", "field.230", "processes"):
        found.append(Fault(f"internal error at {key}", said(hgx, 4, (key, "!999")), "degraded"))
    questions = (("power_limit", "power limit"), ("compute_mode", "compute mode"), ("memory_mib", "memory"))
    found += [Fault(f"internal error at {name}", said(a40, 1, (key, "!999")), "degraded") for key, name in questions]
    counters = ("ecc_errors.1.0", "remapped_rows", "throttle_reasons", "persistence_mode", "ecc", "link_speed", "name")
    compared = ("power_limit", "max_clocks", "vbios", "inforom", "memory_mib", "mig", "compute_mode", "fabric_state")
    found += [Fault(f"no permission for {key}", said(a40, 1, (key, "!4")), "unknown") for key in counters]
    return found + [Fault(f"no permission for {key}", said(hgx, 3, (key, "!4")), "unknown") for key in compared]


def no_driver() -> "list[Fault]":
    """Return machines on which something keeps the driver from being loaded."""
    a40 = machines.a40_pcie()
    held = a40.without_driver()
    for number in range(len(a40.gpus)):
        held = held.change(number, driver="nouveau")
    loaded = {"sys/module/nouveau/refcnt": "3\n"}
    blacklist = {**loaded, "root/etc/modprobe.d/nvidia.conf": "blacklist nouveau\noptions nouveau modeset=0\n"}
    rejected = "4,0,5,-;Loading of module with unavailable key is rejected\n"
    return [
        Fault("nouveau has the GPUs", held.with_files(loaded), "failed"),
        Fault("nouveau has the GPUs in spite of a blacklist", held.with_files(blacklist), "failed"),
        Fault("a module without a known signature", a40.without_driver(), "failed", rejected),
    ]


def counters() -> "list[Fault]":
    a40, hgx = machines.a40_pcie(), machines.hgx_h100()
    slowdowns = (("hardware", "0x8"), ("thermal", "0x20"), ("hardware thermal", "0x40"), ("brake of power", "0x80"))
    fast = ("pcie_generation", "4")  # a GPU at work has the link at its best
    return [
        *(
            Fault(f"{name} slowdown", said(a40, 0, fast, ("throttle_reasons", bits)), "degraded")
            for name, bits in slowdowns
        ),
        Fault("ECC that is on and counts nothing", said(a40, 2, ("ecc_errors.1.0", "!3")), "unknown"),
        Fault("uncorrected errors", said(a40, 0, ("ecc_errors.1.0", "2")), "failed"),
        Fault("a flood of corrected errors", said(hgx, 2, ("ecc_errors.0.0", "100000000")), "degraded"),
        Fault("as many rows remapped as a GPU can", said(hgx, 2, ("remapped_rows", "88 512 0 0")), "degraded"),
        Fault("a slot of an older generation than the peers'", said(hgx, 5, ("pcie_max_generation", "3")), "degraded"),
        Fault(
            "a slot with fewer lanes than the peers'",
            said(hgx, 5, ("pcie_max_width", "8"), ("pcie_width", "8")),
            "degraded",
        ),
        Fault("row remapping pending", said(hgx, 1, ("remapped_rows", "0 1 1 0")), "reboot_required"),
        Fault("row remapping failed", said(hgx, 1, ("remapped_rows", "0 1 0 1")), "failed"),
        Fault("uncorrected errors of B200", said(machines.hgx_b200(), 7, ("ecc_errors.1.0", "1")), "failed"),
        Fault(
            "row remapping of A100 pending",
            said(machines.dgx_a100(), 5, ("remapped_rows", "1 0 1 0")),
            "reboot_required",
        ),
        Fault("row remapping of GB200 failed", said(machines.gb200_tray(), 2, ("remapped_rows", "9 9 0 1")), "failed"),
        Fault(
            "page retirement pending", said(machines.v100_pcie(), 1, ("retired_pages_pending", "1")), "reboot_required"
        ),
        Fault(
            "as many pages retired as a GPU can",
            said(
                machines.v100_cube_mesh(),
                1,
                ("retired_pages_pending", "0"),
                ("retired_pages.0", "60"),
                ("retired_pages.1", "4"),
            ),
            "degraded",
        ),
        Fault("persistence mode off", said(hgx, 3, ("persistence_mode", "0")), "degraded"),
        Fault(
            "slow PCIe link of Hopper", said(hgx, 1, ("throttle_reasons", "0"), ("pcie_generation", "3")), "degraded"
        ),
        Fault("half a PCIe link of Hopper", hgx.change(7, width=8), "degraded"),
        Fault("ECC off after the next reset", said(a40, 0, ("ecc", "1 0")), "reboot_required"),
        Fault("MIG on after the next reset", said(hgx, 0, ("mig", "0 1")), "reboot_required"),
        Fault("narrow PCIe link", a40.change(3, width=8), "degraded"),
        Fault("slow PCIe link at work", said(a40, 0, ("throttle_reasons", "0"), ("pcie_generation", "2")), "degraded"),
    ]


def condition() -> "list[Fault]":
    """Return the faults that a GPU reports of its own parts; fields by the numbers of nvml.h."""
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
        Fault("hot memory of Hopper", said(hgx, 0, ("field.82", "110")), "degraded"),
        Fault(
            "hot memory by a limit of its own",
            said(hgx, 0, ("temperature_threshold.2", "90"), ("field.82", "90")),
            "degraded",
        ),
        Fault(
            "hot memory of a GPU with a temperature to shut down at",
            said(hgx, 0, ("temperature_threshold.0", "92"), ("field.82", "92")),
            "degraded",
        ),
        Fault("much warmer than the other idle one", said(machines.a100_pcie(), 1, ("temperature", "79")), "degraded"),
        Fault("much warmer than idle peers", said(hgx, 3, ("temperature", "79")), "degraded"),
        Fault("many PCIe replays", said(hgx, 6, ("field.94", "4000000000")), "degraded"),
        Fault("many PCIe replays of an older link", said(v100, 6, ("field.94", "90000000")), "degraded"),
        Fault("recovery of NVLink 5", said(b200, 4, ("field.215.17", "1")), "degraded"),
    ]
    links = (("recovery", 162), ("replay", 161))
    found += [Fault(f"one {name} of NVLink 4", said(hgx, 4, (f"field.{n}.7", "1")), "degraded") for name, n in links]
    links = (("recovery", 59), ("replay", 52))
    found += [Fault(f"one {name} of older NVLinks", said(dgx, 4, (f"field.{n}", "1")), "degraded") for name, n in links]
    actions = dict.fromkeys((1, 2, 3, 4, 6, 7), "failed")
    actions.update({5: "degraded", 8: "degraded"})
    return found + [
        Fault(f"recovery action {n}", said(hgx, 5, ("field.230", str(n))), verdict) for n, verdict in actions.items()
    ]


def beyond_limits() -> "list[Fault]":
    """Return the faults that are such only where the user says how much is tolerable."""
    hgx = machines.hgx_h100()
    limited = (
        ("many errors in a GPU's life", "field.6", "9", "max_aggregate_errors"),
        ("many rows remapped", "remapped_rows", "0 9 0 0", "max_remapped_rows"),
        ("many CRC errors of a link", "field.163.5", "9", "max_nvlink_crc_errors"),
        ("more PCIe replays than tolerated", "field.94", "9", "max_pcie_replays"),
    )
    found = [
        Fault(name, said(hgx, 0, (key, value)), "degraded", limits={option: 8}) for name, key, value, option in limited
    ]
    return found + [
        Fault("fewer GPUs than declared", hgx, "failed", limits={"gpu_count": 9}),
        Fault("more GPUs than declared", hgx, "degraded", limits={"gpu_count": 7}),
    ]


def refused() -> "list[Fault]":
    """Questions that NVML refuses to answer."""
    dgx, b200 = machines.dgx_a100(), machines.hgx_b200()
    questions = ("sram", "row_histogram", "inforom_valid", "temperature_margin", "field.94", "field.215", "field.230")
    found = [Fault(f"no permission for {key}", said(b200, 3, (key, "!4")), "unknown") for key in questions]
    questions = ("temperature", "temperature_threshold.1", "field.82", "field.52", "field.59")
    return found + [Fault(f"no permission for {key}", said(dgx, 3, (key, "!4")), "unknown") for key in questions]


def well() -> "list[Fault]":
    """Return the reports of a GPU on its own parts with which it is well."""
    hgx, dgx = machines.hgx_h100(), machines.dgx_a100()
    remapped = (("remapped_rows", "3 2 0 0"), ("row_histogram", "637 2 1 0 0"), ("field.6", "2"), ("sram", "0 1 0"))
    old = [(key, f"!{code}") for key, code in UNKNOWN_TO_OLD_DRIVERS]
    clocks = ("application_clocks", "2619 1980")
    hot = (("temperature_margin", "3"), ("temperature", "84"), ("field.82", "94"))
    return [
        Fault("hot and well", all_said(hgx, *hot), "ok"),
        Fault("hot in degrees and well", all_said(dgx, ("temperature", "89"), ("field.82", "94")), "ok"),
        Fault("some corrected errors", said(hgx, 1, ("ecc_errors.0.0", "40000000")), "ok"),
        Fault(
            "warm at work",
            said(hgx, 1, ("temperature", "79"), ("throttle_reasons", "0"), ("pcie_generation", "5")),
            "ok",
        ),
        Fault("warmest of idle ones", said(hgx, 1, ("temperature", "55")), "ok"),
        Fault("a board with slots of an older generation", all_said(hgx, ("pcie_max_generation", "4")), "ok"),
        Fault("application clocks of all alike", all_said(hgx, clocks), "ok"),
        Fault("some PCIe replays", all_said(hgx, ("field.94", "1000")), "ok"),
        Fault("CRC errors that links corrected", said(hgx, 1, ("field.163.3", "250")), "ok"),
        Fault("rows remapped long ago", said(hgx, 1, *remapped), "ok"),
        Fault("none of the newer questions", all_said(hgx, *old), "ok"),
    ]
