# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.mpi_rankfile import FilterModule


def test_a_rank_has_the_cpus_of_its_gpu(measured):
    assert FilterModule().filters()["mpi_rankfile"]({"gpu-1": measured}).splitlines() == [
        "rank 0=gpu-1 slot=0-7",
        "rank 1=gpu-1 slot=8-15",
    ]
