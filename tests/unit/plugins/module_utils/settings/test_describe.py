# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.describe import (
    GPUS,
    describe,
    describe_forgetful,
    describe_resets,
)

GPU = {"index": 0, "name": "NVIDIA A100"}
EVERY = [
    (problem("no_gpu"), "NVML shows no GPU on this node; see the problems that gpu_facts reports."),
    (problem("gpu_not_found", "7", present="GPU 0, 1"), "This node has no GPU 7; it has GPU 0, 1."),
    (problem("gpu_not_opened", "GPU1", index=1, reason="GPU is lost"), "GPU 1 does not answer: GPU is lost."),
    (problem("not_supported", "GPU0", setting="ecc", **GPU), "GPU 0 (NVIDIA A100): ecc is not supported."),
    (
        problem("no_application_clocks", "GPU0", setting="application_clocks", **GPU),
        "GPU 0 (NVIDIA A100): application_clocks are not supported; use locked_clocks.",
    ),
    (
        problem("out_of_range", "GPU0", setting="power_limit_watts", value=500, low=100, high=400, **GPU),
        "GPU 0 (NVIDIA A100): power_limit_watts 500 is out of range; give 100 to 400.",
    ),
    (
        problem("not_changed", "GPU0", setting="ecc", cause="nvml_error", reason="Unknown Error", **GPU),
        "GPU 0 (NVIDIA A100): ecc cannot be changed: Unknown Error.",
    ),
    (
        problem("not_changed", "GPU0", setting="ecc", cause="no_permission", reason="Insufficient Permissions", **GPU),
        "GPU 0 (NVIDIA A100): ecc cannot be changed: this needs root.",
    ),
]


def clocks(value, *offered):
    return problem("clock_not_supported", "GPU0", setting="s", domain="memory", value=value, clocks=offered, **GPU)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        *EVERY,
        (clocks(7, 1, 2), "GPU 0 (NVIDIA A100): s.memory 7 MHz is not supported; give one of 1, 2."),
        (clocks([5, 7], *range(1, 10)), "GPU 0 (NVIDIA A100): s.memory 5 to 7 MHz is not supported; give 1 to 9 in steps of 1."),
        (clocks(7, 1, 3, *range(4, 20)), "GPU 0 (NVIDIA A100): s.memory 7 MHz is not supported; give 1 to 19."),
    ],
)  # fmt: skip
def test_each_problem_has_its_sentence(one, sentence):
    assert describe(one) == sentence


def test_no_sentence_is_left_out_here():
    assert {one["code"] for one, _sentence in EVERY} | {"clock_not_supported"} == set(GPUS)


def test_gpus_of_one_model_share_a_sentence():
    named = [{"index": index, "name": name} for index, name in enumerate(("A", "B", "A"))]
    assert describe_resets([{**one, "setting": "ecc", "wanted": True} for one in named]) == [
        "GPU 0, 2 (A): ecc turns on only after a reset of the GPU or a reboot.",
        "GPU 1 (B): ecc turns on only after a reset of the GPU or a reboot.",
    ]
    assert describe_forgetful([{**one, "settings": ["compute_mode", "locked_clocks"]} for one in named[:1]]) == [
        "GPU 0 (A): settings that last only while a program uses the GPU: compute_mode, locked_clocks; declare "
        "persistence_mode: true."
    ]
