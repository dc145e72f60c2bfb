# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys of the repository the plan warns of."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan_text import plan_table

HOST = {"gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["A40"]}}
OLD, NEW = "AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80", "EB693B3035CD5710E231E123A4B469963BF863CC"


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({}, []),
        ({"cuda_repository_key_fingerprint": OLD}, ["cuda_repository_key_fingerprint"]),
        ({"cuda_repository_key_fingerprint": "ae09 fe4b bd22 3a84 b2cc fce3 f60f 4b3d 7fa2 af80"}, ["cuda_repository_key_fingerprint"]),
        ({"cuda_repository_key_fingerprint": NEW}, []),
        ({"cuda_repository_key": "https://mirror.example.org/cuda/repos/ubuntu2204/x86_64/7fa2af80.pub"}, ["cuda_repository_key"]),
        ({"cuda_repository_key": "files/7fa2af80.asc", "cuda_repository_key_fingerprint": OLD}, ["cuda_repository_key_fingerprint", "cuda_repository_key"]),
        ({"cuda_repository_key": "files/3bf863cc.pub"}, []),
        ({"cuda_repository_key": "files/mirror.asc"}, []),
        ({"cuda_repository_key_fingerprint": OLD, "gpu_stack_request": {"driver_source": "runfile"}}, []),
    ],
)  # fmt: skip
def test_a_key_that_is_not_signed_with_any_more_is_warned_of(variables, names):
    found = plan({"a": HOST, "b": {**HOST, **variables}}, "2.19.0")
    assert [text.split()[:2] for text in found["warnings"]] == [["b:", name] for name in names]
    assert found["obstacles"] == []


def test_the_plan_shows_it_with_the_key_of_today():
    lines = plan_table(plan({"a": {**HOST, "cuda_repository_key_fingerprint": OLD}}, "2.19.0"))
    text = " ".join(" ".join(lines[lines.index("") :]).split())
    assert text.startswith(f"warning a: cuda_repository_key_fingerprint is '{OLD}', a key")
    assert f"use its key {NEW}" in text
