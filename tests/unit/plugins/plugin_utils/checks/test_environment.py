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
    ("line", "installed", "problem"),
    [
        ("torch==2.13.0", {"torch": "2.13.0+cpu"}, None),
        ("torch==2.13.0+cu126", {"torch": "2.13.0+cpu"}, "torch is 2.13.0+cpu instead of ==2.13.0+cu126"),
        ("torch==2.13.0", {"torch": "2.12.0"}, "torch is 2.12.0 instead of ==2.13.0"),
        ("numpy<2,>=1.26", {"numpy": "1.26.4"}, None),
        ("nvidia_ml_py", {"nvidia-ml-py": "13"}, None),
        ("torch", {}, "torch is not installed"),
        ("torch==2.13.0", {"torch": "garbled"}, "torch is garbled instead of ==2.13.0"),
        ("--find-links /somewhere", {}, None),
    ],
)
def test_requirements(line, installed, problem):
    assert environment.unmet(line, installed) == problem


@pytest.mark.parametrize(
    ("found", "statuses"),
    [
        ({"python": "3.11.2", "packages": {"torch": "2.13.0+cpu", "numpy": "2.4.6"}}, ["passed", "passed"]),
        ({"python": "3.10.1", "packages": {"torch": "2.13.0+cpu"}}, ["failed", "failed"]),
        ({"python": "3.1.1", "packages": {"torch": "2.13.0+cpu", "numpy": "1"}}, ["failed", "passed"]),
        ({"python": None, "packages": {"torch": "2.13.0", "numpy": "1"}}, ["unknown", "passed"]),
        (None, ["failed"]),
    ],
)
def test_contents_of_an_environment(found, statuses):
    assert [check["status"] for check in environment.contents(PLANNED, found)] == statuses


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
