# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._verification_cluster import FilterModule

STACK = {"environments": [{"name": "main", "accelerator": "cuda", "frameworks": {"pytorch": "2.8.0"}}]}


@pytest.mark.parametrize(("compute", "without"), [(True, False), (False, True)])
def test_the_addresses_of_those_who_take_part_and_whether_one_has_no_gpu_that_computes(compute, without):
    hosts = {name: {"gpu_cluster_address": f"10.0.0.{name[-1]}"} for name in ("gpu-1", "gpu-2", "gpu-3")}
    hosts["gpu-2"] |= {"ansible_facts": {"gpu_stack": STACK}, "__verify_gpu_compute": compute}
    found = FilterModule().filters()["_verification_cluster"](["gpu-1", "gpu-2"], hosts)
    assert found == {"addresses": {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2"}, "without_gpus": without}
