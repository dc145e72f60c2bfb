# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.nearest_nics import FilterModule


def test_the_filter_names_the_adapters_of_each_gpu():
    node = {"affinity": {"GPU0": {"cpu_affinity": None, "numa_node": None, "nics": ["mlx5_1", "mlx5_0"]}}}
    assert FilterModule().filters()["nearest_nics"](node) == {"GPU0": ["mlx5_1", "mlx5_0"]}
