# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of a playbook has cost."""

import pytest
from ansible_collections.allreduce.gpu.tests.bench.measure import Cost, started


@pytest.mark.parametrize(
    ("executions", "count"), [({}, 0), ({"a": {"base": 2, "nccl": 1}, "b": {"base": 1}}, 3), ({"a": {"base": 4}}, 4)]
)
def test_the_host_that_had_most_counts(executions, count):
    cost = Cost.__new__(Cost)
    cost.executions = executions
    assert cost.per_host() == count


def test_tasks_that_begin():
    output = "PLAY [all] ***\n\nTASK [a : b] ***\nok: [gpu-1]\n\nRUNNING HANDLER [a : c] ***\nok: [gpu-1] => TASK [x]\n"
    assert started(output) == 2
