# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded servers with host channel adapters, {path: text, or ("link", target)}, and libraries that answer as asked.

A port's data centre bridging is asked and set by the real program dcb, whose messages a preloaded library answers.
"""

import os
import subprocess
from pathlib import Path

PLACE = Path(__file__).parent
GUIDS = ("b8ce:f603:0077:8ab4", "b8ce:f603:0077:8ab5")
OFF = "0000:0000:0000:0000:0000:0000:0000:0000"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a01:0002"


def adapter(
    number, layer="InfiniBand", netdev=None, state="4: ACTIVE", physical="5: LinkUp", rate="200 Gb/sec (4X HDR)"
):
    """One ConnectX-6 with one port, mlx5_NUMBER, on a bus of its own; layout as of Documentation/ABI/stable/sysfs-class-infiniband."""
    address = f"0000:{number + 1}2:00.0"
    home = f"/sys/devices/pci0000:{number + 1}0/0000:{number + 1}0:01.0/{address}"
    device = f"{home}/infiniband/mlx5_{number}"
    netdev = netdev or (f"ib{number}" if layer == "InfiniBand" else f"ens{number}f0np0")
    files = {
        "/sys/bus/pci/devices/" + address: ("link", "../../../" + home[5:]),
        "/sys/bus/pci/drivers/mlx5_core/module": ("link", "../../../../module/mlx5_core"),
        home + "/driver": ("link", "../../../../bus/pci/drivers/mlx5_core"),
        home + "/vendor": "0x15b3\n",
        home + "/device": "0x101b\n",
        home + "/numa_node": f"{number}\n",
        home + f"/net/{netdev}/dev_port": "0\n",
        home + f"/net/{netdev}/type": "32\n" if layer == "InfiniBand" else "1\n",
        home + f"/net/{netdev}/mtu": "2044\n" if layer == "InfiniBand" else "9000\n",
        "/sys/class/net/" + netdev: ("link", "../.." + home[4:] + "/net/" + netdev),
        f"/sys/class/infiniband/mlx5_{number}": ("link", "../.." + device[4:]),
        device + "/device": ("link", "../../../" + address),
        device + "/fw_ver": "20.31.1014\n",
        device + "/board_id": "MT_0000000223\n",
        device + "/hca_type": "MT4123\n",
        device + "/node_type": "1: CA\n",
        device + "/node_guid": GUIDS[number] + "\n",
        device + "/ports/1/state": state + "\n",
        device + "/ports/1/phys_state": physical + "\n",
        device + "/ports/1/rate": rate + "\n",
        device + "/ports/1/link_layer": layer + "\n",
    }
    if layer == "InfiniBand":
        files[home + f"/net/{netdev}/mode"] = "datagram\n"
    else:
        for index, (gid, kind) in enumerate(((OFF, "IB/RoCE v1"), (IPV4, "RoCE v2"))):
            files[device + f"/ports/1/gids/{index}"] = gid + "\n"
            files[device + f"/ports/1/gid_attrs/types/{index}"] = kind + "\n"
            files[device + f"/ports/1/gid_attrs/ndevs/{index}"] = netdev + "\n"
    return files


def efa(number, p2p="NVIDIA"):
    """One Elastic Fabric Adapter, efa_NUMBER: amzn/amzn-drivers, kernel/linux/efa/src, efa_main.c and efa_verbs.c; it has no interface.

    p2p: what efa_sysfs.c says of the GPUs' driver; None: the kernel's own driver, which does not have the file.
    """
    address = f"0000:{number + 1}2:19.0"
    home = f"/sys/devices/pci0000:{number + 1}0/0000:{number + 1}0:01.0/{address}"
    device = f"{home}/infiniband/efa_{number}"
    return {
        "/sys/bus/pci/devices/" + address: ("link", "../../../" + home[5:]),
        "/sys/bus/pci/drivers/efa/module": ("link", "../../../../module/efa"),
        home + "/driver": ("link", "../../../../bus/pci/drivers/efa"),
        home + "/vendor": "0x1d0f\n",
        home + "/device": "0xefa1\n",
        home + "/numa_node": f"{number}\n",
        **({} if p2p is None else {home + "/p2p": p2p + "\n"}),
        f"/sys/class/infiniband/efa_{number}": ("link", "../.." + device[4:]),
        device + "/device": ("link", "../../../" + address),
        device + "/node_type": "7: unspecified\n",
        device + "/node_guid": "0000:0000:0000:0000\n",
        device + "/ports/1/state": "4: ACTIVE\n",
        device + "/ports/1/phys_state": "5: LinkUp\n",
        device + "/ports/1/rate": "100 Gb/sec (4X EDR)\n",
        device + "/ports/1/link_layer": "Unknown\n",
        device + "/ports/1/gids/0": "fe80:0000:0000:0000:0441:a0ff:fe4e:6f01\n",
    }


def server(*adapters):
    """A server with two NUMA nodes and these adapters; without any, one that has no RDMA hardware."""
    files = {
        "/sys/devices/system/node/node0/cpulist": "0-63\n",
        "/sys/devices/system/node/node1/cpulist": "64-127\n",
        "/sys/class/net/eno1/type": "1\n",
        "/sys/class/net/eno1/mtu": "1500\n",
        "/etc/hostname": "node\n",
    }
    for one in adapters:
        files.update(one)
    return files


def peermem(registered=True, module="550.54.15"):
    """Files of a loaded nvidia_peermem that the RDMA core lists."""
    files = {"/sys/module/nvidia_peermem/version": module + "\n", "/sys/module/nvidia_peermem/refcnt": "0\n"}
    if registered:
        files["/sys/kernel/mm/memory_peers/nv_mem/version"] = "1.2\n"
        files["/sys/kernel/mm/memory_peers/nv_mem_nc/version"] = "1.2\n"
    return files


def library(place, name, **defines):
    """Compile simulated_NAME.c to a library in PLACE and return its path."""
    path = place / f"lib{name}-{'-'.join(map(str, defines.values()))}.so"
    options = [
        f"-D{key}" + ("" if value is True else f"={value}") for key, value in defines.items() if value is not False
    ]
    source = PLACE / f"simulated_{name}.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(path), str(source)] + options, check=True)
    return str(path)


class Bridging:
    """Ports with data centre bridging, each in the state in which a driver leaves it, and the program dcb for them."""

    def __init__(self, place, *ports):
        state = place / "dcb"
        state.mkdir()
        for name in ports:
            (state / name).touch()
        self.environment = dict(os.environ, DCB_STATE=str(state), LD_PRELOAD=library(place, "dcb"))

    def run(self, arguments):
        """Return (exit status, both outputs), as settings.rdma.Machine takes it."""
        done = subprocess.run(
            arguments,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def output(self, arguments):
        """Return the output, None of what fails, as ansible_module.program_output does."""
        status, text = self.run(arguments)
        return text if status == 0 else None
