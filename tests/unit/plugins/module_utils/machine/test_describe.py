# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import string

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.describe import SENTENCES, describe
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml_errors import TROUBLED, UNUSABLE
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem

EVERY = [
    (
        problem("acs_redirect", "0000:16:02.0"),
        "PCIe ACS redirects peer-to-peer traffic at bridge 0000:16:02.0",
    ),
    (
        problem("driver_mismatch", loaded="535.1", library="550.1"),
        "Driver version mismatch: kernel module 535.1, user-space library 550.1",
    ),
    (
        problem("fabric_not_ready", state="in_progress"),
        "The NVLink fabric is still starting; CUDA cannot start until the fabric manager has configured it",
    ),
    (
        problem("fabric_apart", "GPU3", domain="a.2", expected="a.1"),
        "GPU3 is in domain or partition a.2 of the NVLink fabric, most of the node's GPUs are in a.1",
    ),
    (
        problem("nic_without_rdma", "0000:c1:00.0", driver="mlx5_core"),
        "Adapter 0000:c1:00.0 has no RDMA device; its driver is mlx5_core",
    ),
    (
        problem("fabric_split", domains="a.1, a.2"),
        "The node's GPUs are in several domains or partitions of the NVLink fabric: a.1, a.2",
    ),
    (
        problem("fabric_unhealthy", "GPU3", health="no_partition"),
        "The NVLink fabric reports for GPU3: it has no partition",
    ),
    (
        problem("gpu_failing", "GPU3", error="gpu_lost"),
        "NVML reports for GPU3: it has fallen off the bus or is otherwise inaccessible",
    ),
    (
        problem("gpu_held", "0000:17:00.0", driver="vfio-pci"),
        "GPU 0000:17:00.0 is bound to driver vfio-pci and not visible to NVML",
    ),
    (
        problem("gpu_not_in_nvml", "0000:17:00.0"),
        "GPU 0000:17:00.0 is on the PCI bus but not visible to NVML",
    ),
    (
        problem("gpu_not_on_bus", "GPU1", pci_bus_id="0000:31:00.0"),
        "GPU1 (0000:31:00.0) is visible to NVML but not on the PCI bus",
    ),
    (problem("gpu_not_opened", "GPU2", reason="GPU is lost"), "NVML cannot open GPU2: GPU is lost"),
    (
        problem("nvlinks_inactive", "GPU4", active=10, expected=12),
        "GPU4 has 10 active NVLinks, not 12",
    ),
    (
        problem("nvlinks_slow", "GPU4", links=2, speed=13281, expected=26562),
        "GPU4 has 2 slow NVLinks, the slowest with 13281 of 26562 MB/s",
    ),
    (
        problem("nvml_unavailable", loaded="535.1", state="nvml_error", reason="Unknown Error"),
        "Kernel module 535.1 is loaded but NVML is not available: Unknown Error",
    ),
    (problem("pcie_link_narrow", "GPU1", width=8, max_width=16), "GPU1 has a PCIe x8 link but supports x16"),
    (
        problem("rail_down", "mlx5_2", port=1, state="DOWN", rate=10, expected=400, peers="mlx5_0, mlx5_1"),
        "mlx5_2 port 1 is DOWN, while its peers run at 400 Gbit/s: mlx5_0, mlx5_1",
    ),
    (
        problem("rail_slow", "mlx5_2", port=1, state="ACTIVE", rate=200, expected=400, peers="mlx5_0, mlx5_1"),
        "mlx5_2 port 1 runs at 200 Gbit/s, while its peers run at 400 Gbit/s: mlx5_0, mlx5_1",
    ),
    (problem("library_missing", library="libnvidia-ml.so.1"), "library libnvidia-ml.so.1 not found"),
    (problem("nvml_crashed", ending="signal 6"), "asking it ended with signal 6"),
    (problem("nvml_hanging", seconds=60), "the driver did not answer within 60 seconds"),
    (
        problem("pynvml_missing", directory="/opt/allreduce/lib"),
        "pynvml is not installed; role allreduce.gpu.base installs it in /opt/allreduce/lib",
    ),
]


@pytest.mark.parametrize(("one", "sentence"), EVERY, ids=[one["code"] for one, _sentence in EVERY])
def test_every_problem_has_its_sentence(one, sentence):
    assert describe(one) == sentence


def test_no_sentence_is_left_out_here():
    assert {one["code"] for one, _sentence in EVERY} == set(SENTENCES)


def test_what_nvml_says_of_itself_is_passed_on():
    assert describe(problem("nvml_error", reason="Unknown Error")) == "Unknown Error"


@pytest.mark.parametrize("one", [one for one, _sentence in EVERY], ids=lambda one: one["code"])
def test_a_sentence_uses_every_value_that_identifies_the_problem(one):
    names = {name for _text, name, _spec, _conversion in string.Formatter().parse(SENTENCES[one["code"]]) if name}
    assert names - {"subject"} <= set(one["detail"])
    assert ("subject" in names) == (one["subject"] is not None)


def test_every_error_that_tells_of_a_gpu_has_its_words():
    for error in UNUSABLE + TROUBLED:
        assert error.replace("_", " ") not in describe(problem("gpu_failing", "GPU0", error=error))
        assert error not in describe(problem("gpu_failing", "GPU0", error=error))
