# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bench says of further nodes, without hosts."""

import dataclasses

import pytest
import yaml

from tests.bench import nodes
from tests.lab import paths, traffic
from tests.lab.traffic import Traffic, Transfer

GIGA = 1 << 30


def node(name, wall=100.0, cache=0, neighbours=0, wheels=0, outside=0, solves=0, compiles=0):
    transfers = (Transfer("wheels", False, wheels, "10.0.0.1", "torch.whl"),)
    packets = {traffic.CACHE: cache, traffic.NEIGHBOURS: neighbours, traffic.OUTSIDE: outside, traffic.CONTROLLER: 0}
    got = Traffic(transfers, packets, frozenset())
    return nodes.Added(name, wall, got, {"solves": solves, "compiles": compiles})


FIRST = node("growth-1", wall=400, cache=GIGA, wheels=GIGA, solves=1, compiles=1)
SECOND = node("growth-2", wall=100, cache=GIGA // 8, neighbours=GIGA, wheels=20 << 20)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"counts": {"solves": 1, "compiles": 0}}, ["growth-2: 1 solves"]),
        ({"counts": {"solves": 0, "compiles": 2}}, ["growth-2: 2 compiles"]),
        (
            {"downloaded": FIRST.downloaded},
            [
                "growth-2: the environment's wheels were served again (1024 MiB)",
                "growth-2: the environment did not come from another node (0 MiB)",
            ],
        ),
        (
            {"downloaded": node("", neighbours=GIGA, outside=7).downloaded},
            ["growth-2: 7 bytes came past the lab's sources"],
        ),
    ],
)
def test_what_a_further_node_may_not_have(change, said):
    second = dataclasses.replace(SECOND, **change)
    assert list(nodes.shortcomings([FIRST, second])) == said
    text = nodes.table("the demo's", [FIRST, second])
    assert text.count("NOT as it must be") == len(said)


def test_each_node_in_multiples_of_the_first():
    lines = nodes.table("the demo's", [FIRST, SECOND]).splitlines()
    assert lines[3].split() == ["growth-1", "400", "1.00", "1073.7", "MB", "1.00", "0.0", "MB", "1", "1"]
    assert lines[4].split() == ["growth-2", "100", "0.25", "134.2", "MB", "0.12", "1073.7", "MB", "0", "0"]
    assert len(lines) == 5


def test_what_runs_once_is_counted_by_the_names_of_its_tasks():
    """As the roles have them: a task that is renamed would never be counted."""
    names = []
    for file in ("frameworks/tasks/solve.yml", "python_env/tasks/conda_solve.yml", "horovod/tasks/compile.yml"):
        tasks = yaml.safe_load((paths.CHECKOUT / "roles" / file).read_text(encoding="utf-8"))
        names += [inner["name"] for task in tasks for inner in [task, *task.get("block", [])]]
    actions = [{"task": f"allreduce.gpu.some_role : {name}"} for name in names]
    assert nodes.counted(actions) == {"solves": 2, "compiles": 1}
    assert nodes.counted([{"task": "allreduce.gpu.base : Install packages"}]) == {"solves": 0, "compiles": 0}


def test_its_tags_are_roles_of_site():
    plays = yaml.safe_load((paths.CHECKOUT / "playbooks" / "site.yml").read_text(encoding="utf-8"))
    tags = [tag for play in plays for task in play.get("tasks", []) for tag in task["tags"]]
    assert [tag for tag in tags if tag in nodes.TAGS.split(",")] == nodes.TAGS.split(",")
