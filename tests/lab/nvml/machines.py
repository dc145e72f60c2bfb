# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines by name. PCI addresses and NUMA layouts follow public recordings where one is named."""

from .machine import Gpu, Machine, Mig, Model, Nic

A40 = Model("NVIDIA A40", 0x2235, 7, "8.6", 46068, (300, 100, 300), nvlink_version=5, nvlinks=4, subsystem=0x145A)
A100_40 = Model(
    "NVIDIA A100-SXM4-40GB", 0x20B0, 7, "8.0", 40960, (400, 100, 400), mig=True, nvlink_version=4, nvlinks=12
)
A100_80 = Model(
    "NVIDIA A100-SXM4-80GB", 0x20B2, 7, "8.0", 81920, (400, 100, 400), mig=True, nvlink_version=4, nvlinks=12
)
H100 = Model(
    "NVIDIA H100 80GB HBM3", 0x2330, 9, "9.0", 81559, (700, 200, 700), (5, 16), mig=True, nvlink_version=6, nvlinks=18
)
RTX_3090 = Model(
    "NVIDIA GeForce RTX 3090", 0x2204, 7, "8.6", 24576, (350, 100, 366), ecc=False, nvlink_version=5, nvlinks=4
)
RTX_3080 = Model("NVIDIA GeForce RTX 3080", 0x2206, 7, "8.6", 10240, (320, 100, 370), ecc=False)
A30 = Model("NVIDIA A30", 0x20B7, 7, "8.0", 24576, (165, 100, 165), mig=True, nvlink_version=4, nvlinks=4)
GH200 = Model("NVIDIA GH200 480GB", 0x2342, 9, "9.0", 97871, (900, 100, 900), (5, 16), mig=True)
GB200 = Model(
    "NVIDIA GB200", 0x2941, 10, "10.0", 189471, (1200, 200, 1200), (5, 16), mig=True, nvlink_version=7, nvlinks=18
)
A100_PCIE = Model(
    "NVIDIA A100-PCIE-40GB", 0x20F1, 7, "8.0", 40960, (250, 150, 250), mig=True, nvlink_version=4, nvlinks=12
)
V100_PCIE = Model("Tesla V100-PCIE-32GB", 0x1DB6, 5, "7.0", 32768, (250, 100, 250), (3, 16))
B200 = Model(
    "NVIDIA B200", 0x2901, 10, "10.0", 183359, (1000, 200, 1000), (5, 16), mig=True, nvlink_version=7, nvlinks=18
)
V100 = Model("Tesla V100-SXM2-32GB", 0x1DB5, 5, "7.0", 32768, (300, 150, 300), (3, 16), nvlink_version=2, nvlinks=6)


def below_root(host_bridge: str, root_port: str, device: str) -> "tuple[str, ...]":
    return (host_bridge, root_port, device)


def below_switch(host: int, root_port: str, upstream: int, slot: int, bus: int) -> "tuple[str, ...]":
    """Return a device below one port of a PCIe switch; the same ``upstream`` is the same switch."""
    return (
        f"pci0000:{host:02x}",
        root_port,
        f"0000:{upstream:02x}:00.0",
        f"0000:{upstream + 1:02x}:{slot:02x}.0",
        f"0000:{bus:02x}:00.0",
    )


def direct(gpus: "list[Gpu]", pairs: "dict[tuple[int, int], int]") -> "tuple[Gpu, ...]":
    """Connect GPUs by NVLinks of their own: {(gpu, gpu): number of links}."""
    links = {number: [] for number in range(len(gpus))}
    for (one, two), count in pairs.items():
        links[one] += [("gpu", gpus[two].address)] * count
        links[two] += [("gpu", gpus[one].address)] * count
    return tuple(Gpu(**{**vars(gpu), "links": tuple(links[number])}) for number, gpu in enumerate(gpus))


def no_gpu() -> Machine:
    return Machine("no-gpu", driver=None, library=None)


def a40_pcie() -> Machine:
    """4×A40 in a server with two sockets, two of them joined by an NVLink bridge."""
    places = [
        ("pci0000:16", "0000:16:02.0", 0x17), ("pci0000:30", "0000:30:02.0", 0x31),
        ("pci0000:97", "0000:97:02.0", 0x98), ("pci0000:b0", "0000:b0:02.0", 0xB1),
    ]  # fmt: skip
    gpus = [
        Gpu(A40, below_root(host, port, f"0000:{bus:02x}:00.0"), numa=number // 2, minor=number)
        for number, (host, port, bus) in enumerate(places)
    ]
    nics = (
        Nic(
            "mlx5_0",
            below_root("pci0000:16", "0000:16:04.0", "0000:18:00.0"),
            0,
            link_layer="Ethernet",
            rate_gbps=25,
            netdev="ens1f0np0",
        ),
    )
    return Machine("a40-pcie", direct(gpus, {(0, 1): 4}), nics, numa={0: "0-31,64-95", 1: "32-63,96-127"})


def _switched(
    name: str, model: Model, switches: int, nics_per_pair: int, numa: "dict[int, str]", nodes: "list[int]", **more
) -> Machine:
    """8 GPUs behind NVSwitches (0: those that are not on PCI), in pairs below PCIe switches with their HCAs."""
    fabric = tuple(
        (f"pci0000:{0xE0:02x}", f"0000:e0:{slot:02x}.0", f"0000:e{slot:x}:00.0") for slot in range(1, switches + 1)
    )
    gpus, nics = [], []
    for pair, node in enumerate(nodes):
        host = 0x10 + 0x30 * pair
        for half in range(2):
            ends = [path[-1] for path in fabric] or [None]
            links = tuple(("nvswitch", ends[link % len(ends)]) for link in range(model.nvlinks))
            path = below_switch(host, f"0000:{host:02x}:01.1", host + 1, half, host + 4 + half)
            settings = () if switches else (("fabric_state", "3"),)
            gpus.append(Gpu(model, path, node, 2 * pair + half, links, settings=settings))
        for number in range(nics_per_pair):
            # The HCAs hang from a second switch below the first one: more than one bridge away from the GPUs.
            above = below_switch(host, f"0000:{host:02x}:01.1", host + 1, 2 + number, host + 8 + 4 * number)
            path = (*above, f"0000:{host + 9 + 4 * number:02x}:00.0", f"0000:{host + 10 + 4 * number:02x}:00.0")
            nics.append(Nic(f"mlx5_{nics_per_pair * pair + number}", path, node))
    return Machine(name, tuple(gpus), tuple(nics), fabric, numa, **more)


def dgx_a100() -> Machine:
    """8×A100 80 GB behind 6 NVSwitches with 8 HCAs, 8 NUMA nodes in 2 packages of which four have GPUs (see NVIDIA/nccl#1505)."""
    numa = {node: f"{16 * node}-{16 * node + 15},{128 + 16 * node}-{128 + 16 * node + 15}" for node in range(8)}
    return _switched("dgx-a100", A100_80, 6, 2, numa, [3, 1, 7, 5], packages=2)


def hgx_h100() -> Machine:
    """8×H100 behind 4 NVSwitches, open kernel modules."""
    numa = {0: "0-55,112-167", 1: "56-111,168-223"}
    more = {"driver": "580.95.05", "library": "580.95.05", "kernel_modules": "open", "cuda": 13000}
    return _switched("hgx-h100", H100, 4, 2, numa, [0, 0, 1, 1], **more)


def hgx_b200() -> Machine:
    """8×B200 behind NVSwitches of NVLink 5, which are not on PCI; otherwise placed as on hgx_h100."""
    numa = {0: "0-55,112-167", 1: "56-111,168-223"}
    more = {"driver": "580.105.08", "library": "580.105.08", "kernel_modules": "open", "cuda": 13000}
    return _switched("hgx-b200", B200, 0, 2, numa, [0, 0, 1, 1], **more)


def _four_a100(name: str, model: Model) -> Machine:
    gpus = [
        Gpu(
            model,
            below_root(f"pci0000:{host:02x}", f"0000:{host:02x}:01.1", f"0000:{host + 1:02x}:00.0"),
            number,
            number,
        )
        for number, host in enumerate((0x00, 0x40, 0x80, 0xC0))
    ]
    pairs = {(one, two): 4 for one in range(4) for two in range(one + 1, 4)}
    nics = tuple(
        Nic(
            f"mlx5_{number}",
            below_root(f"pci0000:{host:02x}", f"0000:{host:02x}:03.1", f"0000:{host + 3:02x}:00.0"),
            2 * number,
        )
        for number, host in enumerate((0x00, 0x80))
    )
    numa = {node: f"{16 * node}-{16 * node + 15}" for node in range(4)}
    return Machine(name, direct(gpus, pairs), nics, numa=numa)


def a100_nvlink() -> Machine:
    """4×A100 40 GB, every pair joined by four NVLinks, one HCA for two GPUs."""
    return _four_a100("a100-nvlink", A100_40)


def a100_80_nvlink() -> Machine:
    """Return the same with 80 GB each."""
    return _four_a100("a100-80-nvlink", A100_80)


def _workstation(name: str, models: "tuple[Model, Model]", links: int) -> Machine:
    """Two GPUs in one socket, no HCA."""
    gpus = [
        Gpu(model, below_root("pci0000:00", f"0000:00:0{n + 1}.1", f"0000:0{n + 1}:00.0"), 0, n)
        for n, model in enumerate(models)
    ]
    return Machine(name, direct(gpus, {(0, 1): links} if links else {}), numa={0: "0-31"})


def rtx_3090() -> Machine:
    """Return a workstation: 2×RTX 3090 with an NVLink bridge, one socket."""
    return _workstation("rtx-3090", (RTX_3090, RTX_3090), 4)


def rtx_3090_3080() -> Machine:
    """Return a workstation with two GPUs that have nothing but PCIe in common."""
    return _workstation("rtx-3090-3080", (RTX_3090, RTX_3080), 0)


def v100_pcie() -> Machine:
    """Return a server with 2×V100 in the PCIe form, which has no NVLink."""
    return _workstation("v100-pcie", (V100_PCIE, V100_PCIE), 0)


def a100_pcie() -> Machine:
    """2×A100 in the PCIe form, all three bridges between them."""
    return _workstation("a100-pcie", (A100_PCIE, A100_PCIE), 12)


def v100_cube_mesh() -> Machine:
    """8×V100 in the hybrid cube mesh of the DGX-1V: 6 links each, one or two to four others (fixture dgx-1v)."""

    def path(pair: int, slot: int, bus: int) -> "tuple[str, ...]":
        host = 0x00 if pair < 2 else 0x80
        return below_switch(
            host, f"0000:{host:02x}:0{pair % 2 + 2}.0", 0x10 * (pair + 1), slot, 0x10 * (pair + 1) + bus
        )

    places = [(pair, half) for pair in range(4) for half in range(2)]
    gpus = [Gpu(V100, path(pair, half, 4 + half), pair // 2, 2 * pair + half) for pair, half in places]
    mesh = {
        (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
        (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
    }  # fmt: skip
    nics = tuple(Nic(f"mlx5_{pair}", path(pair, 4, 8), pair // 2, rate_gbps=100) for pair in range(4))
    return Machine("v100-cube-mesh", direct(gpus, mesh), nics, numa={0: "0-19,40-59", 1: "20-39,60-79"})


def a30_pairs() -> Machine:
    """4×A30 in bridged pairs in two sockets, the only HCA on the second (fixture a30-4-pairs)."""
    socket = ["pci0000:30", "pci0000:b0"]
    paths = [
        below_root(socket[0], "0000:30:02.0", "0000:31:00.0"),
        below_root(socket[0], "0000:30:04.0", "0000:32:00.0"),
        (socket[1], "0000:b0:02.0", "0000:b1:00.0", "0000:b2:00.0", "0000:b3:00.0"),
        (socket[1], "0000:b0:02.0", "0000:b1:00.0", "0000:b2:10.0", "0000:b4:00.0", "0000:b5:00.0", "0000:b6:00.0"),
    ]
    gpus = [Gpu(A30, path, number // 2, number) for number, path in enumerate(paths)]
    nics = (Nic("mlx5_0", (*paths[3][:5], "0000:b5:10.0", "0000:b7:00.0"), 1, rate_gbps=100),)
    numa = {0: "0-23,48-71", 1: "24-47,72-95"}
    return Machine("a30-pairs", direct(gpus, {(0, 1): 4, (2, 3): 4}), nics, numa=numa)


def gb200_tray() -> Machine:
    """Compute tray of a GB200 rack: each GPU in a PCI domain of its own, its NVSwitches in other trays.

    Reconstructed: addresses as nvidia-smi shows them on such trays, CPUs as in fixture gb200-tray. There nvidia-smi says
    SYS for every NIC; here they are where the kernel would put them.
    """
    links = (("nvswitch", None),) * GB200.nvlinks
    fabric = (("fabric_state", "3"), ("fabric_rack", "1"))
    gpus = tuple(
        Gpu(
            GB200,
            below_root(f"pci{domain}:00", f"{domain}:00:00.0", f"{domain}:01:00.0"),
            number // 2,
            number,
            links,
            settings=fabric,
        )
        for number, domain in enumerate(("0008", "0009", "0018", "0019"))
    )
    nics = tuple(
        Nic(f"mlx5_{number}", below_root(f"pci{domain}:00", f"{domain}:00:00.0", f"{domain}:03:00.0"), number // 2, rate_gbps=400)
        for number, domain in enumerate(("0000", "0002", "0010", "0012"))
    )  # fmt: skip
    more = {"driver": "580.105.08", "library": "580.105.08", "kernel_modules": "open", "cuda": 13000}
    return Machine("gb200-tray", gpus, nics, numa={0: "0-71", 1: "72-143"}, **more)


def gh200() -> Machine:
    """Return one Grace Hopper superchip: the GPU in a PCI domain of its own, next to one HCA."""
    gpu = Gpu(GH200, below_root("pci0009:00", "0009:00:00.0", "0009:01:00.0"))
    nic = Nic("mlx5_0", below_root("pci0002:00", "0002:00:00.0", "0002:01:00.0"), rate_gbps=400)
    more = {"driver": "580.105.08", "library": "580.105.08", "kernel_modules": "open", "cuda": 13000}
    return Machine("gh200", (gpu,), (nic,), numa={0: "0-71"}, **more)


def a100_mig() -> Machine:
    """Return one A100 cut into two instances."""
    parts = (Mig("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 1, 19968), Mig("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 2, 19968))
    return Machine("a100-mig", (Gpu(A100_40, below_root("pci0000:00", "0000:00:01.1", "0000:07:00.0"), mig=parts),))


MACHINES = (
    no_gpu,
    a40_pcie,
    dgx_a100,
    hgx_h100,
    hgx_b200,
    a100_nvlink,
    a100_80_nvlink,
    rtx_3090,
    rtx_3090_3080,
    v100_pcie,
    a100_pcie,
    v100_cube_mesh,
    a30_pairs,
    gb200_tray,
    gh200,
    a100_mig,
)


def named(name: str) -> Machine:
    return next(machine for machine in (make() for make in MACHINES) if machine.name == name)
