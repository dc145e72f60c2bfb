# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter.nccl_environment import FilterModule


def test_one_adapter_needs_no_variable(measured):
    found = FilterModule().filters()["nccl_environment"](measured)
    assert found["variables"] == {}
    assert set(found["reasons"]) == {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX"}
