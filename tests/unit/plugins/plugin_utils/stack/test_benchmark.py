# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What resolving costs, in CPU time, so that a busy machine does not fail it."""

from __future__ import annotations

import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan_text import plan_table
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

KINDS = [
    {"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 8},
    {"os": "ubuntu 20.04", "gpus": ["A40"] * 4, "profile": "a40-ubuntu2004"},
    {"os": "rocky 8.10", "gpus": ["NVIDIA A100-SXM4-40GB"] * 4, "profile": "a100-el8", "ansible_core": "2.16"},
    {"os": "debian 12", "request": {"driver": "535"}},
    {
        "os": "ubuntu 24.04",
        "gpus": ["NVIDIA H100 80GB HBM3"] * 8,
        "request": {"pytorch": "latest", "tensorflow": "latest"},
    },
]


def cpu(work, *arguments):
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


@pytest.mark.parametrize("question", KINDS, ids=lambda question: question["os"])
def test_a_resolve_takes_less_than_50_ms(question):
    load()
    assert min(cpu(resolve, question) for _attempt in range(5)) < 0.050


def test_a_plan_for_1000_hosts_of_5_kinds_takes_less_than_10_s():
    def every_host():
        hosts = {}
        for number in range(1000):
            kind = KINDS[number % 5]
            wishes = {"gpu_stack_profile": kind.get("profile"), "gpu_stack_request": kind.get("request")}
            hosts[f"gpu-{number:04}"] = {"gpu_stack_host": kind, **wishes}
        return plan_table(plan(hosts, "2.19.0"))

    load()
    assert cpu(every_host) < 10
