# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of GPUs from a node's copy of the PCI ID database."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.pci_names import parse_names, read_names

DATABASE = b"""# Vendors, devices and subsystems.
10dd  Matsushita
\t2235  Not NVIDIA's
10de  NVIDIA Corporation
\t2230  GA102GL [RTX A6000]
# A comment
\t2235  GA102GL [A40]
\t\t10de 145a  A40 of NVIDIA
\t2901  GB100 [B\xc3\xbc200]
10df  Emulex
\t2901  Not NVIDIA's either
"""


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({0x2235}, {0x2235: "GA102GL [A40]"}),
        ({0x2901, 0x2230, 0x145A}, {0x2230: "GA102GL [RTX A6000]", 0x2901: "GB100 [B\u00fc200]"}),
        ({None}, {}),
        (set(), {}),
    ],
    ids=str,
)
def test_names(wanted, names):
    assert parse_names(DATABASE.splitlines(True), wanted) == names


def test_the_first_database_that_can_be_read(tmp_path):
    (tmp_path / "one").write_bytes(DATABASE)
    (tmp_path / "two").write_bytes(b"10de  NVIDIA\n\t2235  Another\n")
    paths = [str(tmp_path / name) for name in ("absent", "one", "two")]
    assert read_names({0x2235}, paths) == {0x2235: "GA102GL [A40]"}
    assert read_names({0x2235}, paths[:1]) == {}
