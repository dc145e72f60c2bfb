# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of NVLink, of its fabric and of rails, and GPUs that are set up unlike their peers."""

from dataclasses import replace

from . import machines
from .fault import Fault, all_said, cut, said
from .machine import Machine


def fabric() -> "list[Fault]":
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
        Fault("all links of A100 slow", all_said(dgx, ("link_speed", "12500")), "degraded"),
        Fault("all links of V100 slow", all_said(machines.v100_cube_mesh(), ("link_speed", "20000")), "degraded"),
        Fault("fabric of B200 not started", said(b200, 7, ("fabric_state", "1")), "failed"),
        Fault("fabric of B200 in progress", all_said(b200, ("fabric_state", "2")), "failed"),
        Fault("registration of H100 failed", said(hgx, 6, ("fabric_status", "999")), "failed"),
        Fault("routes of B200 unhealthy", said(b200, 2, ("fabric_health", str(1 << 4))), "failed"),
        Fault("fabric in progress", said(tray, 0, ("fabric_state", "2")), "failed"),
        Fault("registration failed", said(tray, 0, ("fabric_status", "999")), "failed"),
        Fault("one GPU in another partition", said(tray, 0, ("fabric_clique", "7")), "degraded"),
        Fault("two partitions", said(said(tray, 0, ("fabric_clique", "7")), 1, ("fabric_clique", "7")), "degraded"),
        Fault("fabric unhealthy", said(tray, 0, ("fabric_summary", "2")), "failed"),
        Fault("fabric of limited capacity", said(tray, 0, ("fabric_summary", "3")), "degraded"),
    ]
    for machine in (hgx, dgx, b200, tray):
        found += [Fault(f"all of {machine.name} lack {lost} links", cut(machine, len(machine.gpus[0].links) - lost), "degraded")
                  for lost in (1, len(machine.gpus[0].links))]  # fmt: skip
    masks = (
        (1, "degraded"),
        (1 << 2, "degraded"),
        (1 << 4, "failed"),
        (1 << 6, "degraded"),
        (2 << 12, "degraded"),
        (2 << 14, "degraded"),
    )
    masks += tuple((value << 8, "failed") for value in range(2, 9))
    return found + [
        Fault(f"fabric mask {mask:#x}", said(tray, 1, ("fabric_health", str(mask))), verdict) for mask, verdict in masks
    ]


def ports(machine: Machine, changes: "dict[int, dict]") -> Machine:
    """Return the machine with adapters of which something is different: {number: {state, rate_gbps …}}."""
    nics = [replace(nic, **changes.get(number, {})) for number, nic in enumerate(machine.nics)]
    return replace(machine, nics=tuple(nics))


def aer(machine: Machine, number: int, end: int, kind: str, count: int) -> Machine:
    """Return the machine with a GPU's link of which one end has reported errors; end: 0 for the GPU, 1 for the port above it."""
    path = machine.gpus[number].path
    place = "/".join(("sys/devices", *path[: len(path) - end]))
    total = {"correctable": "COR", "fatal": "FATAL", "nonfatal": "NONFATAL"}[kind]
    text = f"Undefined 0\nDLP 0\nSDES {count}\nTLP 0\nTOTAL_ERR_{total} {count}\n"
    return machine.with_files({f"{place}/aer_dev_{kind}": text})


def declared_ports() -> "list[Fault]":
    """Return the faults of less than declared; equals that are alike tell nothing."""
    hgx, dgx = machines.hgx_h100(), machines.dgx_a100()
    rate = hgx.nics[0].rate_gbps
    few = ports(hgx, {number: {"state": "DOWN"} for number in range(len(hgx.nics))})
    return [
        Fault("fewer ports than declared", dgx, "degraded", limits={"nic_ports": len(dgx.nics) + 1}),
        Fault("all ports down", few, "degraded", limits={"nic_ports": 1}),
        Fault("ports slower than declared", hgx, "degraded", limits={"nic_rate_gbps": 2 * rate}),
        Fault("fewer fast ports than declared", hgx, "degraded", limits={"nic_ports": 1, "nic_rate_gbps": 2 * rate}),
    ]


def broken_adapters() -> "list[Fault]":
    hgx = machines.hgx_h100()
    lines = {
        "firmware of an adapter does not answer": "cmd_exec_timeout:1: DISABLE_HCA(0x105) timeout. Will cause a leak of a command resource",
        "health of an adapter compromised": "poll_health:801:(pid 0): device's health compromised - reached miss count",
        "unrecoverable error of an adapter": "print_health_info: synd 0x1: unrecoverable hardware error",
    }
    return [
        Fault(name, hgx, "failed", f"3,0,1,-;mlx5_core {hgx.nics[1].address}: {line}\n") for name, line in lines.items()
    ]


def well_connected() -> "list[Fault]":
    hgx, a40 = machines.hgx_h100(), machines.a40_pcie()
    limits = {"nic_ports": len(hgx.nics), "nic_rate_gbps": hgx.nics[0].rate_gbps}
    stranger = (
        "3,0,1,-;mlx5_core 0000:fe:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count\n"
    )
    return [
        Fault("ports as declared", hgx, "ok", limits=limits),
        Fault("more ports than declared", hgx, "ok", limits={**limits, "nic_ports": 1}),
        Fault(
            "another card that nothing joins", a40.change(3, model=replace(machines.A40, name="NVIDIA RTX A6000")), "ok"
        ),
        Fault("an adapter of another host", hgx, "ok", stranger),
    ]


def rails() -> "list[Fault]":
    hgx, dgx, b200 = machines.hgx_h100(), machines.dgx_a100(), machines.hgx_b200()
    return [
        Fault("fatal errors of a GPU's link", aer(hgx, 5, 0, "fatal", 1), "degraded"),
        Fault("fatal errors of the port above a GPU", aer(machines.a40_pcie(), 2, 1, "fatal", 1), "degraded"),
        Fault(
            "nonfatal errors of a GPU's link", aer(dgx, 5, 0, "nonfatal", 4), "degraded", limits={"max_aer_nonfatal": 3}
        ),
        *declared_ports(),
        *broken_adapters(),
        Fault("one rail down", ports(hgx, {2: {"state": "DOWN"}}), "degraded"),
        Fault("one rail at half its rate", ports(hgx, {5: {"rate_gbps": 100}}), "degraded"),
        Fault("two rails down", ports(dgx, {0: {"state": "DOWN"}, 7: {"state": "DOWN"}}), "degraded"),
        Fault("one rail down and one slow", ports(b200, {1: {"state": "DOWN"}, 6: {"rate_gbps": 50}}), "degraded"),
    ]


def access() -> "list[Fault]":
    """Peer-to-peer access, by NVML's numbers; pairs are asked from the first GPU of both."""
    hgx, a40, dgx, b200 = machines.hgx_h100(), machines.a40_pcie(), machines.dgx_a100(), machines.hgx_b200()
    off = [(f"p2p.{number}", "4") for number in range(8)]
    return [
        Fault("a pair without peer access", said(hgx, 2, ("p2p.5", "5")), "degraded"),
        Fault("a pair that only reads", said(dgx, 0, ("p2p.7.1", "3")), "degraded"),
        Fault("a pair that only writes", said(b200, 3, ("p2p.4.0", "2")), "degraded"),
        Fault("peer access over PCIe switched off", all_said(a40, *off), "degraded"),
        Fault("peer access of a board switched off", all_said(hgx, *off), "degraded"),
        Fault("a bridge without peer access", said(a40, 0, ("p2p.1", "1")), "degraded"),
        Fault("a pair of PCIe unlike the others", said(a40, 1, ("p2p.2", "3")), "degraded"),
        Fault("peer access of a meshed pair lost", said(machines.v100_cube_mesh(), 0, ("p2p.3", "5")), "degraded"),
        Fault("peer access of NVLink unknown", said(hgx, 0, ("p2p.1", "6")), "unknown"),
        Fault("no permission for peer access", said(hgx, 1, ("p2p.2", "!4")), "unknown"),
    ]


def well_reached() -> "list[Fault]":
    """Return the capabilities that a pair may lack and be well."""
    a40, hgx = machines.a40_pcie(), machines.hgx_h100()
    across = (("p2p.2", "1"), ("p2p.3", "1"))  # the other socket
    return [
        Fault("no peer access between sockets", said(said(a40, 0, *across), 1, *across), "ok"),
        Fault("a driver without the question", all_said(hgx, *((f"p2p.{n}", "!3") for n in range(8))), "ok"),
    ]


def peers() -> "list[Fault]":
    hgx, a40, b200 = machines.hgx_h100(), machines.a40_pcie(), machines.hgx_b200()
    settings = (
        ("power_limit", "500000"), ("max_clocks", "1755 1755 2619"), ("vbios", "96.00.61.00.01"), ("inforom", "G520.0200.00.04"),
        ("memory_mib", "65247"), ("mig", "1 1"), ("ecc", "0 0"), ("compute_mode", "3"),
    )  # fmt: skip
    slow = said(all_said(hgx, ("application_clocks", "2619 1980")), 3, ("application_clocks", "2619 1410"))
    others = (("vbios", "97.00.61.00.01"), ("compute_mode", "2"), ("memory_mib", "97871"), ("power_limit", "900000"))
    return [
        *(Fault(f"{key} unlike others of B200", said(b200, 6, (key, value)), "degraded") for key, value in others),
        *(Fault(f"{key} unlike seven others", said(hgx, 3, (key, value)), "degraded") for key, value in settings),
        Fault("lower application clock than seven others", slow, "degraded"),
        Fault("another model among seven", hgx.change(3, model=replace(machines.H100, name="NVIDIA H200")), "degraded"),
        Fault("power limit unlike three others", said(a40, 2, ("power_limit", "200000")), "degraded"),
    ]
