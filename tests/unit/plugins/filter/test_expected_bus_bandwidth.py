# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.expected_bus_bandwidth import FilterModule


def test_the_sum_of_the_links_of_a_gpu(measured):
    # Four NVLinks 3.0 of 25 GB/s each; over PCIe 4.0 it would be less.
    assert FilterModule().filters()["expected_bus_bandwidth"](measured) == 100.0
