# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import coherence

GPU = {
    "gpus": [{"seen_by": ["pci", "nvml"]}],
    "driver": {"loaded_version": "535.309.01", "library_version": "535.309.01"},
}
GUEST = {"seen_by": ["pci"], "kernel_driver": "vfio-pci"}
LOST = {"seen_by": ["pci"], "kernel_driver": "nvidia"}
BARE = {"gpus": [], "driver": {"loaded_version": None, "library_version": None}}


def smi(state, exit_code, count=0):
    """What module node_probe says of nvidia-smi; its lines decide nothing."""
    return {"state": state, "count": count, "exit_code": exit_code, "lines": ["a line"]}


@pytest.mark.parametrize(
    ("node", "answer", "status"),
    [
        (GPU, smi("listed", 0, count=1), "passed"),
        (GPU, smi("listed", 0, count=0), "failed"),
        (GPU, smi("listed", 0, count=2), "failed"),
        ({**GPU, "gpus": [*GPU["gpus"], GUEST]}, smi("listed", 0, count=1), "passed"),
        ({**GPU, "gpus": [{**GUEST, "kernel_driver": "nouveau"}]}, smi("no_driver", 9), "failed"),
        ({**GPU, "gpus": [*GPU["gpus"], LOST]}, smi("listed", 0, count=1), "failed"),
        (GPU, smi("no_driver", 9), "failed"),
        (GPU, smi("no_device", 6), "failed"),
        (BARE, smi("no_driver", 9), "passed"),
        (BARE, smi("no_device", 6), "passed"),
        (BARE, smi("listed", 0, count=1), "failed"),
        (BARE, smi("not_started", None), "failed"),
        (BARE, smi("version_mismatch", 18), "failed"),
        (BARE, smi("failed", 12), "failed"),
        (BARE, None, "unknown"),
    ],
)
def test_nvidia_smi_answers_as_the_hardware_demands(node, answer, status):
    assert coherence.nvidia_smi(node, answer)["status"] == status


def test_without_a_planned_driver_nothing_is_asked_of_it():
    assert list(coherence.checks(False, {"packages": {}}, BARE, {})) == []


@pytest.mark.parametrize(
    ("packages", "cuda", "statuses"),
    [
        ({"cuda-toolkit-12-2": "12.2.2-1"}, "12.2", ["passed"]),
        ({"cuda-toolkit-12-9": "12.9.0-1"}, "12.2", ["passed"]),  # minor versions are compatible
        ({"cuda-toolkit-12-2": "12.2.2-1", "cuda-toolkit-13-0": "13.0"}, "12.2", ["failed"]),
        ({"cuda-toolkit-12-2": "12.2.2-1"}, None, ["unknown"]),
        ({"cuda-toolkit-12-config-common": "12.2.2-1"}, "12.2", []),
    ],
)
def test_a_toolkit_runs_on_the_drivers_cuda(packages, cuda, statuses):
    assert [check["status"] for check in coherence.toolkit(packages, cuda)] == statuses


def test_what_nvidia_smi_printed_is_the_reason_where_it_does_not_agree():
    check = coherence.nvidia_smi(GPU, {**smi("version_mismatch", 18), "lines": ["Failed to initialize NVML:", "x"]})
    assert (check["measured"], check["reason"], check["fix"]) == (
        "exit code 18",
        "Failed to initialize NVML: x",
        coherence.LOOK,
    )
