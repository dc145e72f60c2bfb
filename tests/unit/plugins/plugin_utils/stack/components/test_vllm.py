# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The build of PyTorch that vLLM takes: that of the general package index, and of the CUDA that vLLM's metadata names."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components.vllm import vllm_pytorch_build
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.model import Candidate
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.rule import Context
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load


@pytest.mark.parametrize(
    ("told", "build", "says"),
    [
        ({}, {"tag": "cu128", "cuda": "12.8", "default": True}, None),
        ({"cuda": "13"}, {"tag": "cu130", "cuda": "13.0.2", "default": True}, None),
        (
            {"cuda": "13"},
            {"tag": "cu128", "cuda": "12.8", "default": True},
            "for CUDA 13 and the PyTorch of the general",
        ),
        ({"cuda": "13"}, {"tag": "cu132", "cuda": "13.2"}, "for CUDA 13 and the PyTorch of the general"),
        (
            {},
            {"tag": "cu126", "cuda": "12.6"},
            "for the PyTorch of the general package index, not for PyTorch 2.14.0+cu126",
        ),
        ({}, {"tag": "cpu"}, "for the PyTorch of the general package index"),
    ],
    ids=["not told", "the same", "another", "the same in another build", "another build", "without CUDA"],
)
def test_the_build_that_a_wheel_is_compiled_for(told, build, says):
    vllm, torch = Candidate("vllm", "0.33.0", row=told), Candidate("pytorch", "2.14.0", build["tag"], build)
    reason = vllm_pytorch_build(Context(load()), vllm, torch)
    assert reason is None if says is None else says in reason
