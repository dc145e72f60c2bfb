# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.mpi_hostfile import FilterModule


def test_a_node_has_a_slot_for_each_gpu(measured):
    assert FilterModule().filters()["mpi_hostfile"]({"gpu-1": measured}) == "gpu-1 slots=2\n"
