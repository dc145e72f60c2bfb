# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.filter._archive_rounds import FilterModule

ASKED = {"main": {"digest": "a", "installed": False}}
HOSTVARS = {
    "gpu-1": {"asked": ASKED, "gpu_cluster_address": "10.0.0.1"},
    "gpu-2": {"asked": ASKED, "ansible_facts": {"default_ipv4": {"address": "10.0.0.2"}}},
    "gpu-3": {},
}


def test_hosts_that_ask_get_it_from_the_address_of_another():
    rounds = FilterModule().filters()["_archive_rounds"]
    assert rounds(HOSTVARS, HOSTVARS, "asked") == {
        "main": {
            "packers": ["gpu-1"],
            "rounds": [{"gpu-2": {"source": "gpu-1", "packer": "gpu-1", "address": "10.0.0.1", "keep": False}}],
        }
    }
    assert rounds(HOSTVARS, HOSTVARS, "asked", enabled=False) == {"main": {"packers": [], "rounds": []}}
