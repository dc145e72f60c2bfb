# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
import yaml
from ansible_collections.allreduce.gpu.tests.bench import scale
from ansible_collections.allreduce.gpu.tests.bench.measure import Cost
from ansible_collections.allreduce.gpu.tests.bench.scale import Pair, counts, further, table


@pytest.mark.parametrize(("most", "found"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8])])
def test_counts(most, found):
    assert counts(most) == found


@pytest.mark.parametrize(("costs", "slope"), [({1: 10}, None), ({1: 10, 2: 12.5}, 2.5), ({1: 10, 2: 99, 8: 24}, 2.0)])
def test_each_further_host(costs, slope):
    assert further(costs) == slope


def test_table():
    one, eight = Pair(Cost(20.0, 10.0), Cost(12.0, 8.0)), Pair(Cost(30.0, 24.0), Cost(15.0, 11.5))
    assert table({1: one, 8: eight}) == [
        "                           linear          mitogen_linear",
        "    hosts   seconds  core-seconds   seconds  core-seconds",
        "        1      20.0          10.0      12.0           8.0",
        "        8      30.0          24.0      15.0          11.5",
        "  core-seconds of the controller for each further host: 2.0, 0.5",
    ]
    assert len(table({1: one})) == 3


def test_measure_both_strategies_on_the_first_hosts(tmp_path, monkeypatch):
    hosts = {name: {} for name in ("a", "b", "c")}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"gpu_nodes": {"hosts": hosts}}), encoding="utf-8")
    runs = []
    monkeypatch.setattr(scale, "playbook", lambda name, _inventory, *options: runs.append((name, *options)))
    monkeypatch.setattr(scale.mitogen, "site", lambda _inventory, *options: runs.append(("mitogen", *options)))
    assert list(scale.measure(tmp_path, "-e", "x=1")) == [1, 2, 3]
    assert runs == [
        (way, "--limit", limit, "-e", "x=1") for limit in ("a", "a,b", "a,b,c") for way in ("site", "mitogen")
    ]
