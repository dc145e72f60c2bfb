# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.nvlink_islands import FilterModule


def test_gpus_that_nvlink_joins_are_one_island(measured):
    assert FilterModule().filters()["nvlink_islands"](measured) == [["GPU0", "GPU1"]]
