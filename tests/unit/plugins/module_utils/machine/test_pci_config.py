# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration spaces: what they say, and single bits of them on a copy in a file."""

import struct

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import pci_config
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper

CONFIG = "/sys/bus/pci/devices/0000:01:00.0/config"
ACS_PATH, SIZE_PATH = CONFIG + "#ECAP_ACS+06.w:002c", CONFIG + "#CAP_EXP+08.w:7000"


def device(root, content):
    place = root / CONFIG.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    return FileTree(str(root)), place


def test_what_a_port_says():
    found = pci_config.describe(helper.space(helper.DOWNSTREAM, 0x1D, (8, 16), (1, 5), 4096, 128))
    assert found == {
        "readable": True, "port": "downstream", "acs": 0x1D, "read_request": 4096, "payload": 128, "relaxed_ordering": True,
        "link": {"width": 8, "max_width": 16, "generation": 1, "max_generation": 5},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("port", "name"),
    [(0x0, "endpoint"), (0x4, "root_port"), (0x5, "upstream"), (0x6, "downstream"), (0x7, "pci_bridge"), (0xF, None)],
)
def test_kinds_of_ports(port, name):
    assert pci_config.describe(helper.space(port))["port"] == name


def test_without_acs():
    found = pci_config.describe(helper.space(acs=None))
    assert (found["readable"], found["acs"]) == (True, None)


@pytest.mark.parametrize(
    ("length", "readable", "express"), [(4096, True, True), (256, False, True), (64, False, False), (0, False, False)]
)
def test_what_this_user_cannot_read_is_not_known(length, readable, express):
    found = pci_config.describe(helper.space(acs=0x1D)[:length])
    assert found["readable"] is readable and (found["acs"] is not None) is readable
    assert (found["port"] is not None) is (found["read_request"] is not None) is express


def test_a_device_that_is_gone_says_nothing():
    found = pci_config.describe(b"\xff" * 4096)
    assert {key: value for key, value in found.items() if value is not None} == {"readable": True}


def test_lists_that_run_in_circles_end():
    content = bytearray(helper.space())
    content[0x41] = 0x40
    struct.pack_into("<I", content, 0x100, 0x0001 | 0x100 << 20)
    assert pci_config.find_capability(bytes(content)) is None and pci_config.find_extended(bytes(content)) is None


def test_a_list_is_not_there_where_the_status_says_so():
    content = bytearray(helper.space())
    struct.pack_into("<H", content, 0x06, 0)
    assert pci_config.find_capability(bytes(content)) is None


@pytest.mark.parametrize("size", [128, 256, 512, 1024, 2048, 4096])
def test_sizes(size):
    assert pci_config.describe(helper.space(read_request=size))["read_request"] == size
    assert pci_config.describe(helper.space(payload=size))["payload"] == size
    assert pci_config.size(pci_config.encoded(size), 0x7000) == size


def test_names_of_bits():
    assert pci_config.acs_names(0x7F) == [
        "SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans",
    ]  # fmt: skip
    assert pci_config.acs_names(helper.LINUX_ACS) == ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert pci_config.ACS_REDIRECT == 0x2C


@pytest.mark.parametrize(
    ("path", "before", "after", "offset", "words"),
    [
        (ACS_PATH, "000c", "0000", helper.ACS + 6, (0x1D, 0x11)),
        (SIZE_PATH, "2000", "5000", helper.EXPRESS + 8, (0x2030, 0x5030)),
    ],
)
def test_bits_are_written_and_all_others_stay(tmp_path, path, before, after, offset, words):
    tree, place = device(tmp_path, helper.space(helper.DOWNSTREAM, helper.LINUX_ACS))
    was = place.read_bytes()
    assert struct.unpack_from("<H", was, offset)[0] == words[0]
    assert pci_config.read_register(tree, path) == before
    pci_config.write_register(tree, path, after)
    now = place.read_bytes()
    assert struct.unpack_from("<H", now, offset)[0] == words[1] and pci_config.read_register(tree, path) == after
    assert (now[:offset], now[offset + 2 :]) == (was[:offset], was[offset + 2 :])
    pci_config.write_register(tree, path, before)
    assert place.read_bytes() == was


def test_bits_beyond_the_mask_are_never_written(tmp_path):
    tree, place = device(tmp_path, helper.space(acs=0x00))
    pci_config.write_register(tree, ACS_PATH, "ffff")
    assert struct.unpack_from("<H", place.read_bytes(), helper.ACS + 6)[0] == 0x2C


def test_one_access_of_two_bytes(tmp_path, monkeypatch):
    """The kernel makes one write to the device of it."""
    tree, dummy = device(tmp_path, helper.space(acs=0x1D))
    written = []
    monkeypatch.setattr(pci_config.os, "write", lambda number, data: written.append(data))
    pci_config.write_register(tree, ACS_PATH, "0000")
    assert written == [b"\x11\x00"]


def test_a_register_that_is_not_there(tmp_path):
    tree, dummy = device(tmp_path, helper.space(acs=None))
    assert pci_config.read_register(tree, ACS_PATH) is None
    with pytest.raises(EnvironmentError):
        pci_config.write_register(tree, ACS_PATH, "0000")
    assert pci_config.read_register(tree, ACS_PATH.replace("01:00", "02:00")) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (ACS_PATH, True), (SIZE_PATH, True), (CONFIG, False), ("/proc/sys/vm/swappiness", False),
        ("/etc/config#CAP_EXP+08.w:7000", False), (CONFIG + "#68.w:7000", False), (ACS_PATH + "0", False),
    ],
)  # fmt: skip
def test_what_is_a_register(path, expected):
    assert pci_config.is_register(path) is expected
