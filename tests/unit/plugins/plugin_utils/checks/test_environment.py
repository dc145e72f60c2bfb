# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import environment

PLANNED = {
    "name": "main",
    "python": "3.11",
    "accelerator": "cpu",
    "requirements": ["torch==2.13.0", "numpy"],
    "frameworks": {"pytorch": "2.13.0"},
}


@pytest.mark.parametrize(
    ("accelerator", "gpus", "torch", "status"),
    [
        ("cpu", 0, {"cuda_available": False, "device_count": 0}, "passed"),
        ("cuda", 2, {"cuda_available": True, "device_count": 2}, "passed"),
        ("cuda", 2, {"cuda_available": True, "device_count": 1}, "failed"),
        ("cuda", 2, {"cuda_available": False, "device_count": 0}, "failed"),
        ("cpu", 1, {"cuda_available": True, "device_count": 1}, "failed"),
        ("cuda", 2, {"error": "ImportError: libcudart"}, "unknown"),
        ("cuda", 2, None, "unknown"),
    ],
)
def test_cuda_matches_the_accelerator(accelerator, gpus, torch, status):
    answer = {"torch": torch} if torch else None
    assert environment.cuda(dict(PLANNED, accelerator=accelerator), gpus, answer)["status"] == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"torch": {"version": "2.13.0+cpu"}}, "passed"),
        ({"torch": {"error": "ModuleNotFoundError: torch"}}, "failed"),
        ({"error": "python took longer than 240 seconds"}, "unknown"),
        (None, "unknown"),
    ],
)
def test_imports(answer, status):
    assert environment.imports("main", "torch", answer)["status"] == status
