# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds of every configuration space and of every pair of paths."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.module_utils.machine import pci_config
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.topology import bridges_between
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.integers(0, 0xFFFE)
BYTES = st.binary(max_size=600) | st.binary(min_size=4096, max_size=4096)
BRIDGES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(BYTES)
def test_no_content_stops_the_reader(content):
    found = pci_config.describe(content)
    assert found["readable"] is (len(content) > 256)
    assert found["acs"] is None or found["readable"]


@given(BYTES, st.integers(0x40, 0xF0))
def test_a_list_that_points_anywhere_ends(content, pointer):
    space = bytearray(content.ljust(0x100, b"\0"))
    struct.pack_into("<H", space, 0x06, 0x0010)
    space[0x34] = pointer
    assert set(pci_config.describe(bytes(space))) == set(pci_config.describe(helper.space()))


@given(before=WORDS, text=WORDS)
def test_a_masked_write_is_undone_by_what_was_read(before, text):
    with tempfile.TemporaryDirectory() as root:
        place = Path(root, "sys/bus/pci/devices/0000:01:00.0/config")
        place.parent.mkdir(parents=True)
        place.write_bytes(helper.space(acs=before))
        tree, path = FileTree(root), pcie.acs_register("0000:01:00.0")
        was = pci_config.read_register(tree, path)
        pci_config.write_register(tree, path, f"{text:04x}")
        now = struct.unpack_from("<H", place.read_bytes(), helper.ACS + 6)[0]
        assert now == before & ~pci_config.ACS_REDIRECT | text & pci_config.ACS_REDIRECT
        if now != 0xFFFF:  # a device that is gone
            pci_config.write_register(tree, path, was)
            assert place.read_bytes() == helper.space(acs=before)


@given(BRIDGES, BRIDGES)
def test_the_way_is_the_same_in_both_directions(one, other):
    there = bridges_between(["h", *one, "x"], ["h", *other, "y"])
    back = bridges_between(["h", *other, "y"], ["h", *one, "x"])
    assert (there is None) is (back is None)
    shared = bool(one and other and one[0] == other[0])
    assert (there is not None) is shared
    if there is not None:
        assert sorted(there) == sorted(back) and there[0] == back[0] and there[0] in one and there[0] in other
