# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's lists of hosts."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import hostlist


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["gpu"], "gpu"),
        (["gpu1"], "gpu1"),
        (["gpu2", "gpu1"], "gpu[1-2]"),
        (["gpu1", "gpu1"], "gpu1"),
        (["gpu9", "gpu10", "gpu11"], "gpu[9-11]"),
        (["gpu09", "gpu10", "gpu12"], "gpu[09-10,12]"),
        (["gpu01", "gpu02", "gpu03"], "gpu[01-03]"),
        (["gpu099", "gpu100"], "gpu[099-100]"),
        (["gpu9", "gpu09"], "gpu[9,09]"),
        (["gpu", "gpu1", "gpu2", "login"], "gpu,gpu[1-2],login"),
        (["rack1-gpu1", "rack1-gpu2", "rack2-gpu1"], "rack1-gpu[1-2],rack2-gpu1"),
        (["7"], "7"),
        (["a1234567890", "a1234567891"], "a1[234567890-234567891]"),
    ],
)
def test_names_are_folded(names, folded):
    assert hostlist.fold(names) == folded


@pytest.mark.parametrize(
    ("hosts", "name", "there"),
    [
        ("gpu1", "gpu1", True),
        ("gpu1", "gpu11", False),
        ("gpu[1-3]", "gpu2", True),
        ("gpu[1-3]", "gpu4", False),
        ("gpu[01-03]", "gpu2", False),
        ("gpu[01-03]", "gpu02", True),
        ("gpu[9-10]", "gpu10", True),
        ("login,gpu[1,3]", "gpu3", True),
        ("login,gpu[1,3]", "login", True),
        ("rack[0-1]-gpu[1-2]", "rack1-gpu2", True),
        ("rack[0-1]-gpu[1-2]", "rack2-gpu2", False),
        ("gpu[1-999999999]", "gpu123456", True),
        ("gpu[x-3]", "gpu3", False),
        ("gpu[3-]", "gpu3", False),
        ("gpu[1", "gpu1", False),
        ("g.u1", "gpu1", False),
        ("", "gpu1", False),
    ],
)
def test_a_list_has_a_name(hosts, name, there):
    assert hostlist.has(hosts, name) is there
