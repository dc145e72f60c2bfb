# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.tests.bench.measure import Cost
from ansible_collections.allreduce.gpu.tests.bench.scale import counts, further, table


@pytest.mark.parametrize(("most", "found"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8])])
def test_counts(most, found):
    assert counts(most) == found


@pytest.mark.parametrize(("costs", "slope"), [({1: 10}, None), ({1: 10, 2: 12.5}, 2.5), ({1: 10, 2: 99, 8: 24}, 2.0)])
def test_each_further_host(costs, slope):
    assert further(costs) == slope


def test_table():
    assert table({1: Cost(20.0, 10.0), 8: Cost(30.0, 24.0)}) == [
        "    hosts   seconds  core-seconds",
        "        1      20.0          10.0",
        "        8      30.0          24.0",
        "  core-seconds of the controller for each further host: 2.0",
    ]
    assert len(table({1: Cost(20.0, 10.0)})) == 2
