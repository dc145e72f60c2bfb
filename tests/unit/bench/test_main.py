# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a no-change run, and what is no such run."""

from collections import Counter

import pytest

from tests.bench import __main__ as bench
from tests.bench.measure import Cost

ROLES = {
    "gpu-1": Counter({"allreduce.gpu.base": 2, "allreduce.gpu.nccl": 1}),
    "gpu-2": Counter({"allreduce.gpu.base": 3}),
}
SITE = Cost(20.0, 15.0, executions=ROLES, changed={"gpu-1": 0, "gpu-2": 0}, tasks=80)
QUICK = Cost(12.0, 10.0, changed={"gpu-1": 0, "gpu-2": 0})
FLOOR, SETUP = Cost(0.5, 0.1), Cost(4.0, 3.0)

TABLE = """\
A no-change `site` run on two hosts, in multiples of the floor (SSH round trip + package query)

  wall time                               40 ×
    as `ansible -m setup`                5.0 ×
    the same under Mitogen               3.0 ×
  controller CPU per host                150 ×
    the same under Mitogen               100 ×
  tasks that begin                        80
  remote module executions per host        3
    base                                   3
    nccl                                   1

"""


@pytest.mark.parametrize(
    ("changed", "moved"),
    [
        ({}, ""),
        ({"site": {"gpu-1": 2}}, "not a no-change run: {'gpu-1': 2} and, under Mitogen, {}\n"),
        ({"quick": {"gpu-2": 1}}, "not a no-change run: {} and, under Mitogen, {'gpu-2': 1}\n"),
    ],
)
def test_a_run_that_changes_nothing(changed, moved, monkeypatch, tmp_path, capsys):
    site, quick = (
        Cost(run.wall, run.cpu, run.executions, {**run.changed, **changed.get(name, {})}, tasks=run.tasks)
        for name, run in (("site", SITE), ("quick", QUICK))
    )
    monkeypatch.setattr(bench, "playbook", lambda *_arguments: site)
    monkeypatch.setattr(bench.mitogen, "site", lambda *_arguments: quick)
    monkeypatch.setattr(bench, "floor", lambda _inventory: FLOOR)
    monkeypatch.setattr(bench, "gathering", lambda _inventory: SETUP)
    assert bench._measure("two hosts", tmp_path) is not moved.startswith("not")
    assert capsys.readouterr().out == TABLE + moved
