# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from xml.etree import ElementTree

from ansible_collections.allreduce.gpu.plugins.filter.nccl_topology_xml import FilterModule


def test_the_file_has_the_gpus(measured):
    system = ElementTree.fromstring(FilterModule().filters()["nccl_topology_xml"](measured))
    assert system.tag == "system"
    assert {one.get("dev") for one in system.iter("gpu")} == {"0", "1"}
