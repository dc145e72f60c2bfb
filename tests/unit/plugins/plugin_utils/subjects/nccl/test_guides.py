# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of docs/rdma.md about variables that guides set says what the code does with each."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host import SWITCHES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.request import problems, refused, request

from .test_decide import EXPECTED, TWO, machine

ROOT = Path(__file__).resolve().parents[6]
SECTION = (ROOT / "docs" / "rdma.md").read_text(encoding="utf-8").split("## Variables that guides set\n")[1]
CELLS = [line.strip("| ").split(" | ") for line in SECTION.split("\n## ")[0].splitlines() if line.startswith("| `")]
ROWS = {name.strip("`"): kind for name, kind, _why in CELLS if not name.startswith("`nccl_conf")}
CODES = {"derived": [], "accepted": [], "refused": ["nccl_refused"], "not NCCL's": ["nccl_no_variable"]}
# Variables of the four reference systems, and switches that the health check knows.
WANTED = {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_NET_GDR_LEVEL", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME", *SWITCHES}


@pytest.mark.parametrize(("name", "kind"), ROWS.items())
def test_a_variable_is_taken_as_the_table_says(name, kind):
    found = problems(request({"nccl_conf_variables": {name: "1"}}))
    assert [problem.code for problem in found] == CODES[kind]


def test_every_variable_that_is_refused_by_name_has_a_row():
    assert {name for name, kind in ROWS.items() if kind == "refused"} == {row.name for row in refused()}


def test_the_variables_that_are_derived_are_those_that_have_a_line_on_some_machine():
    found = {line.name for name in EXPECTED for line in decide(request({}), TWO, machine(name), "10.1.0.5")}
    assert {name for name, kind in ROWS.items() if kind == "derived"} == found


def test_variables_of_the_reference_systems_and_of_the_health_check_have_a_row():
    assert set(ROWS) >= WANTED
    assert len(ROWS) == len(CELLS)


def test_the_variables_that_mpirun_is_given_have_a_row():
    text = (ROOT / "plugins/plugin_utils/launch/launchers/mpirun.py").read_text(encoding="utf-8")
    named = {name for name in ROWS if name.startswith("OMPI_MCA_")}
    assert named
    assert [name for name in named if f'"{name.removeprefix("OMPI_MCA_")}"' not in text] == []
