# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._verification_plan import FilterModule


def test_a_node_reaches_the_others_and_not_itself():
    hosts = {name: {"gpu_cluster_address": address} for name, address in (("gpu-1", "10.0.0.1"), ("gpu-2", "10.0.0.2"))}
    found = FilterModule().filters()["_verification_plan"](
        {"driver": None, "gpus": [], "environments": []},
        "gpu-1",
        hosts["gpu-1"],
        {"addresses": {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2"}, "without_gpus": False},
        list(hosts),
    )
    assert (found["peers"], found["gpu_health"], found["torch_environment"]) == ({"gpu-2": "10.0.0.2"}, False, None)
