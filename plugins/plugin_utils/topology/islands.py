# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group GPUs that should train together, and estimate their bandwidth: pure functions of gpu_node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...module_utils.machine.topology import gpu_label

# GB/s of one link in one direction, by NVLink version (NVIDIA's architecture white papers).
LINK_SPEED = {"1.0": 20.0, "2.0": 25.0, "2.2": 25.0, "3.0": 25.0, "3.1": 14.0625, "4.0": 25.0, "5.0": 50.0}
# GB/s of one lane in one direction, by PCIe generation, after encoding.
LANE_SPEED = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}


def connected(names: Iterable[str], topology: Mapping, near: Callable[[str | None], bool]) -> list[list[str]]:
    """Group the names that codes which are ``near`` connect, also through others; all in the order of the names."""
    order = list(names)
    groups: list[list[str]] = []
    for name in order:
        joined = [group for group in groups if any(near(topology.get(name, {}).get(other)) for other in group)]
        rest = [group for group in groups if group not in joined]
        groups = [*rest, sorted([*sum(joined, []), name], key=order.index)]
    return sorted(groups, key=lambda group: order.index(group[0]))


def nvlink_islands(gpu_node: Mapping) -> list[list[str]]:
    """Group the GPUs that reach each other over NVLink alone; a GPU without NVLink is a group of its own."""
    return linked([gpu_label(gpu) for gpu in gpu_node["gpus"]], gpu_node["topology"])


def linked(names: Iterable[str], topology: Mapping) -> list[list[str]]:
    """Return the names in groups that NVLinks connect."""
    return connected(names, topology, lambda code: str(code).startswith("NV"))


def expected_bus_bandwidth(gpu_node: Mapping) -> float | None:
    """Return the peak bus bandwidth in GB/s of an all-reduce over the node's GPUs, as nccl-tests define it.

    None if unknown. The slowest GPU decides. Over NVLink it is the sum of its active links, else its PCIe link. Real
    runs reach about 80 % of it. One GPU alone has no bus.
    """
    gpus = gpu_node["gpus"]
    if len(gpus) < 2:
        return None
    speed = _nvlink_speed if is_one_island(gpu_node) else _pcie_speed
    speeds = [known for known in map(speed, gpus) if known is not None]
    return round(min(speeds), 1) if len(speeds) == len(gpus) else None


def is_one_island(gpu_node: Mapping) -> bool:
    """Tell whether all GPUs of the node reach each other over NVLink alone."""
    return len(nvlink_islands(gpu_node)) == 1


def _nvlink_speed(gpu: Mapping) -> float | None:
    """Return the sum of the active links: what NVML says of each, and by its version only where an older driver does not."""
    speeds = [_link_speed(link) for link in gpu["nvlinks"] if link["active"]]
    known = [speed for speed in speeds if speed is not None]
    return sum(known) if known and len(known) == len(speeds) else None


def _link_speed(link: Mapping) -> float | None:
    said = link.get("speed_mbytes_per_second")
    return said / 1000 if said else LINK_SPEED.get(link["version"])


def _pcie_speed(gpu: Mapping) -> float | None:
    """Return the width in use, but the best generation: idle GPUs lower it."""
    width, generation = gpu["pcie"]["width"], gpu["pcie"]["max_generation"]
    return width * LANE_SPEED[generation] if width and generation in LANE_SPEED else None
