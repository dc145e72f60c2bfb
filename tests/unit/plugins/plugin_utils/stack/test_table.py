# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as text."""

from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.table import plan_table


def stack(**question):
    return resolve(question)["stack"]


STACKS = {
    "gpu-2": stack(os="ubuntu 22.04", gpus=["NVIDIA A100-SXM4-80GB"] * 8, request={"horovod": "0.28.1"}),
    "gpu-1": stack(os="ubuntu 22.04", gpus=["NVIDIA A100-SXM4-80GB"] * 8, request={"horovod": "0.28.1"}),
    "box": stack(os="debian 12"),
}


def test_equal_hosts_stand_together_and_the_most_come_first():
    lines = plan_table(STACKS)
    assert lines[0].startswith("2 hosts, kind ") and lines[0].endswith("gpu-1, gpu-2")
    assert any(line.startswith("1 host, kind ") and line.endswith("box") for line in lines)


def test_lines_fit_a_terminal_of_80_columns():
    many = {f"gpu-{number:04}": STACKS["box"] for number in range(1000)}
    assert all(len(line) <= 76 for line in plan_table({**many, **STACKS}))


def test_what_is_shown():
    text = "\n".join(plan_table(STACKS))
    for part in (
        "8 x A100 SXM4 80GB",
        "fabric manager 595.91.07",
        "nccl",
        "Python 3.10",
        "pytorch 2.0.1",
        "why driver",
        "GPUs           none",
    ):
        assert part in text


def test_the_order_of_hosts_does_not_matter():
    assert plan_table(STACKS) == plan_table(dict(reversed(STACKS.items())))
