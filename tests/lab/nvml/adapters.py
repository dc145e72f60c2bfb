# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host sees adapters: what our modules read, and what libibumad reads in addition, for the real ibstat."""

from pathlib import Path

from .files import link, write
from .machine import Machine, Nic

# States of a port in sysfs: drivers/infiniband/core/sysfs.c of the kernel, state_to_name.
STATES = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
# Physical states of a port: linux-rdma/rdma-core, libibumad/umad.h, and the same file of the kernel.
LINK_UP, POLLING = "5: LinkUp", "2: Polling"


def write_nic(sys: Path, nic: Nic) -> None:
    home = sys / "devices" / Path(*nic.path)
    infiniband = home / "infiniband" / nic.name
    port = {
        "state": f"{STATES[nic.state]}: {nic.state}",
        "link_layer": nic.link_layer,
        "rate": f"{nic.rate_gbps} Gb/sec (4X HDR)",
    }
    write(infiniband / "ports" / "1", {name: f"{text}\n" for name, text in port.items()})
    for name, text in (("fw_ver", nic.firmware), ("board_id", nic.board)):
        if text:
            write(infiniband, {name: f"{text}\n"})
    if nic.netdev:
        write(home / "net" / nic.netdev, {"dev_port": "0\n"})
    if nic.link_layer == "Ethernet":
        gids = {"0": ("fe80:0000:0000:0000:0a00:27ff:fe00:0001", "IB/RoCE v1"), "1": ("fe80:0000:0000:0000:0a00:27ff:fe00:0001", "RoCE v2"),
                "2": ("0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1"), "3": ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2")}  # fmt: skip
        for index, (gid, kind) in gids.items():
            attributes = {
                f"gids/{index}": gid,
                f"gid_attrs/types/{index}": kind,
                f"gid_attrs/ndevs/{index}": nic.netdev,
            }
            write(infiniband / "ports" / "1", {name: f"{text}\n" for name, text in attributes.items()})
    link(infiniband / "device", home)
    link(sys / "class" / "infiniband" / nic.name, infiniband)


def write_verbs(machine: Machine, sys: Path) -> None:
    """Write the files; names and formats: Documentation/ABI/stable/sysfs-class-infiniband of the kernel."""
    for number, nic in enumerate(machine.nics):
        home = sys / "devices" / Path(*nic.path) / "infiniband" / nic.name
        guid = f"b8ce:f603:0077:{number:04x}"
        files = {
            "node_type": "1: CA", "node_guid": guid, "sys_image_guid": guid, "hca_type": "MT4123", "hw_rev": "0",
            **{f"ports/1/{name}": text for name, text in port_files(nic, number, guid).items()},
        }  # fmt: skip
        write(home, {name: f"{text}\n" for name, text in files.items() if not (home / name).exists()})


def port_files(nic: Nic, number: int, guid: str) -> "dict[str, str]":
    """An InfiniBand port that is up has got a local identifier from the subnet manager; others have none."""
    up = nic.state != "DOWN"
    managed = nic.state in ("ARMED", "ACTIVE") and nic.link_layer == "InfiniBand"
    return {
        "lid": hex(number + 7 if managed else 0), "lid_mask_count": "0", "sm_lid": hex(int(managed)), "sm_sl": "0",
        "phys_state": LINK_UP if up else POLLING, "cap_mask": "0xa651e848",
        "gids/0": f"fe80:0000:0000:0000:{guid}", "pkeys/0": "0xffff",
    }  # fmt: skip
