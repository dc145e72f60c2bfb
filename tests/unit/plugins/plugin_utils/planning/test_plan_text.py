# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as text."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan_text import plan_table

BOARD = {
    "gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 8},
    "gpu_stack_request": {"driver": "595.91.07", "horovod": "0.28.1"},
}
BOX = {"gpu_stack_host": {"os": "debian 12"}}
TOO_NEW = {**BOARD, "gpu_stack_request": {"driver": "535", "pytorch": "2.15.0"}}
HOSTS = {"gpu-2": BOARD, "gpu-1": BOARD, "box": BOX, "gpu-3": TOO_NEW}


def table(hosts):
    return plan_table(plan(hosts, "2.19.0"))


def test_equal_hosts_stand_together_and_the_most_come_first():
    lines = table(HOSTS)
    assert lines[0].startswith("2 hosts, kind ") and lines[0].endswith("gpu-1, gpu-2")
    assert any(line.startswith("1 host, kind ") and line.endswith("box") for line in lines)


def test_what_is_refused_comes_last_with_why_and_what_works():
    lines = table(HOSTS)
    block = lines[lines.index("1 host, refused: gpu-3") :]
    assert block[1:3] == ["system         ubuntu 22.04", "GPUs           8 x NVIDIA A100-SXM4-80GB"]
    assert block[3] == "conflict       driver 535 and pytorch 2.15.0 do not fit together"
    why, fix = (next(number for number, line in enumerate(block) if line.startswith(one)) for one in ("why  ", "fix  "))
    assert "needs driver 580.65.06 or newer" in " ".join(map(str.strip, block[why:fix]))
    assert block[fix].startswith("fix            set driver to ")
    assert any(line.startswith("suggestion     ") for line in block)


def test_lines_fit_a_terminal_of_80_columns():
    many = {f"gpu-{number:04}": BOX for number in range(1000)}
    assert all(len(line) <= 72 for line in table({**many, **HOSTS}))


def test_a_label_longer_than_its_column_has_a_line_to_itself():
    lines = table({"gpu-1": {**BOARD, "gpu_stack_request": {"container_toolkit": "1.17.4"}}})
    for label, text in (("container toolkit", "1.17.4"), ("why container_toolkit", "asked for as 1.17.4")):
        assert lines[lines.index(label) + 1] == f"{'':15}{text}"


def test_what_prevents_a_plan_comes_last_with_what_to_do():
    facts = {
        "distribution": "Debian", "distribution_version": "12.11", "architecture": "x86_64",
        "gpu_node_state": {"disk_free_mib": {"/": 99000, "/opt": 20}},
    }  # fmt: skip
    obstacle, needed, fix = table({"gpu-1": {"ansible_facts": facts}})[-3:]
    assert obstacle.startswith("obstacle       gpu-1: 20 MiB are free under /opt, but about ")
    assert needed.strip() == "needed for environment main"
    assert fix == "fix            free some space or put a larger disk there"


def test_what_is_shown():
    text = "\n".join(table(HOSTS))
    for part in (
        "8 x A100 SXM4 80GB",
        "fabric manager 595.91.07",
        "nccl",
        "Python 3.10 from the distribution, horovod",
        "pytorch 2.6.0",
        "why driver",
        "GPUs           none",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("auto", "Python 3.10 from the distribution, "),
        ("standalone", "standalone build of CPython 3.12, installed by uv, "),
        ("/opt/python3.11", "Python 3.11 at /opt/python3.11, "),
    ],
)
def test_the_interpreter_of_an_environment_is_shown_with_its_source(python, says):
    lines = " ".join(
        line.strip()
        for line in table({"gpu-1": {**BOARD, "gpu_stack_request": {"pytorch": "2.14.1"}, "python_env_python": python}})
    )
    assert f"env main       {says}pytorch" in lines


def test_an_interpreter_of_conda_is_shown():
    host = {**BOARD, "gpu_stack_request": {"python": "3.11"}, "python_env_manager": "conda"}
    lines = " ".join(line.strip() for line in table({"gpu-1": host}))
    assert "env main       Python 3.11 from conda, pytorch" in lines
    assert "as python_env_manager says; rattler installs it, unless another program is named" in lines


def test_the_cuda_of_wheels_that_the_general_package_index_has_is_shown():
    host = {**BOARD, "gpu_stack_request": {"pytorch": "2.4.1", "pytorch_index": "pypi"}}
    lines = " ".join(line.strip() for line in table({"gpu-1": host}))
    assert "pytorch 2.4.1 (CUDA 12.1 wheels of the general package index)" in lines


def test_the_order_of_hosts_does_not_matter():
    assert table(HOSTS) == table(dict(reversed(HOSTS.items())))
