# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An all-reduce's speed beside the limit of the links: judged over NVLink, told elsewhere."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.bandwidth import checks


def gpu(index, links=0, width=16, generation=5):
    return {
        "index": index,
        "pci_bus_id": f"0000:{index:02x}:00.0",
        "nvlinks": [{"active": True, "version": "4.0", "speed_mbytes_per_second": 25000}] * links,
        "pcie": {"width": width, "max_generation": generation},
    }


def node(gpus=8, links=18, rates=()):
    names = [f"GPU{index}" for index in range(gpus)]
    code = f"NV{links}" if links else "SYS"
    return {
        "gpus": [gpu(index, links) for index in range(gpus)],
        "topology": {a: {b: "X" if a == b else code for b in names} for a in names},
        "nics": [
            {"name": f"mlx5_{at}", "ports": [{"state": "ACTIVE", "rate_gbps": rate}]} for at, rate in enumerate(rates)
        ],
    }


def run(*speeds, backend="nccl"):
    sizes = (16 << 20, 256 << 20)
    return {
        "backend": backend,
        "bandwidth": [
            {"bytes": size, "busbw_gbytes_per_second": speed} for size, speed in zip(sizes, speeds, strict=False)
        ],
    }


@pytest.mark.parametrize(
    ("metrics", "nodes", "status", "expected", "share"),
    [
        (run(95.0, 361.0), [node()], "passed", "25% of 450.0 GB/s or more", "(80% of the limit)"),
        (run(9.0, 41.0), [node()], "failed", "25% of 450.0 GB/s or more", "(9% of the limit)"),  # over PCIe
        (run(5.0, 9.45), [node(2, links=0)], "skipped", "at most 63.0 GB/s", "(15% of the limit)"),
        (run(20.0, 180.0), [node(rates=[400] * 8)] * 2, "skipped", "at most 400.0 GB/s", "(45% of the limit)"),
        (run(2.0, 10.0), [node(1, rates=[100]), node(1, rates=[200])], "skipped", "at most 12.5 GB/s", "(80% of the limit)"),
        (run(1.0), [node(), node(rates=[400])], "skipped", "", ""),  # adapters of one are not known
        (run(1.0), [node(), {}], "skipped", "", ""),
        (run(0.0), [node(1)], "skipped", "", ""),
        (run(1.0, backend="gloo"), [node()], "skipped", "", ""),
    ],
)  # fmt: skip
def test_what_the_links_allow(metrics, nodes, status, expected, share):
    [found] = checks(metrics, nodes)
    assert (found["status"], found["expected"]) == (status, expected)
    assert share in found["measured"] and ("limit" in found["measured"]) is bool(share)


def test_nothing_measured_is_nothing_told():
    assert checks({"backend": "nccl", "bandwidth": []}, [node()]) == []
