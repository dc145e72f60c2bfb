# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.rank_binding import FilterModule


def test_each_rank_has_a_gpu_its_cpus_and_an_adapter(measured):
    found = FilterModule().filters()["rank_binding"](measured)
    assert [(one["local_rank"], one["gpu"], one["cpus"], one["nic"]) for one in found] == [
        (0, "GPU0", "0-7", "mlx5_0"),
        (1, "GPU1", "8-15", "mlx5_0"),
    ]
