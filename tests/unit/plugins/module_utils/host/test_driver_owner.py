# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is in charge of a node's driver, by the files that tell it."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.driver_owner import read_driver_owner
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

# As podman, Docker and LXC leave it by default; with --privileged; on a machine.
DOCKER, PRIVILEGED, MACHINE = "00000000a80425fb", "000001fffeffffff", "000001ffffffffff"
LXC = "0000003cfdfeffff"
DGX = """DGX_NAME="DGX Server"
DGX_PRETTY_NAME="NVIDIA DGX Server"
DGX_SWBUILD_DATE="2020-03-04-14-36-37"
DGX_SWBUILD_VERSION="4.4.0"

DGX_OTA_VERSION="4.9.0"
DGX_OTA_DATE="Mon Sep 14 12:00:00 UTC 2020"

DGX_OTA_VERSION="5.5.1"
"""


def status(bounding):
    return {"/proc/1/status": f"Name:\tsystemd\nCapPrm:\t000001ffffffffff\nCapBnd:\t{bounding}\n"}


def owner(tmp_path, files, container=False):
    return read_driver_owner(tree(tmp_path, files), container)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (status(MACHINE), None),
        (status(DOCKER), None),
        ({"/etc/dgx-release": DGX}, ("dgx_os", "DGX OS 5.5.1")),
        ({"/etc/dgx-release": 'DGX_SWBUILD_VERSION="7.2.1"\n'}, ("dgx_os", "DGX OS 7.2.1")),
        ({"/etc/dgx-release": ""}, ("dgx_os", "DGX OS")),
        ({"/opt/azurehpc/component_versions.txt": '{"NVIDIA": "580.95.05"}'}, ("azure_hpc", "the Azure HPC image")),
        ({"/opt/azurehpc/component_versions.txt": '{"AMD": "6.4"}'}, None),
        ({"/opt/deeplearning/metadata/env_version": "M125\n"}, ("google_dlvm", "the Google Deep Learning VM image")),
        ({"/var/lib/dpkg/info/lambda-stack-cuda.list": "/.\n"}, ("lambda_stack", "Lambda Stack")),
        (
            {"/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n", "/dev/dxg": ""},
            ("wsl", "Windows (WSL)"),
        ),
        ({"/proc/sys/kernel/osrelease": "6.6.57.1-microsoft-standard\n"}, None),
        ({"/proc/sys/kernel/osrelease": "6.8.0-60-generic\n", "/dev/dxg": ""}, None),
    ],
    ids=str,
)
def test_images(tmp_path, files, expected):
    found = owner(tmp_path, files)
    assert (found and (found["code"], found["name"])) == expected


@pytest.mark.parametrize(
    ("bounding", "left"), [(DOCKER, True), (LXC, True), (PRIVILEGED, False), (MACHINE, False), (None, False)]
)
def test_a_container_that_may_load_no_modules_has_its_hosts_driver(tmp_path, bounding, left):
    """One that may, such as the hosts of the lab, is treated as a machine."""
    files = {**(status(bounding) if bounding else {}), "/etc/dgx-release": DGX}
    assert owner(tmp_path, files, container=True)["code"] == ("container" if left else "dgx_os")
