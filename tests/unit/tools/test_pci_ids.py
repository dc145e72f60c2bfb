# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of PCI ids: made of what the database has, and made anew without a difference."""

import pytest
import yaml

from tools.pci_ids import TABLES, chips, gpus, main, render, version_of

DATABASE = """#
#\tVersion: 2026.10.24
#
10dd  Another
\t2235  GA102GL [Not NVIDIA's]
10de  NVIDIA Corporation
\t13f2  GM204GL [Tesla M60]
\t\t10de 113a  Tesla M60
\t\t10de 114d  GRID M60-1Q
\t\t1043 114e  GRID M60-2Q
\t1af1  GA100 [A100 NVSwitch]
\t2235  GA102GL [A40]
\t22a3  GH100 [H100 NVSwitch]
\t22e8  GB202 High Definition Audio Controller
\t2336  GH100
\t2900  GB100 [Reserved Dev ID A]
\t2b00  GB10B [Jetson AGX Thor]
\t2c19  GB203M / GN22 [GeForce RTX 5080 Max-Q / Mobile]
\t0de1  GF108 [GeForce GT 430]
10df  Emulex
\t2236  GA102GL [Not NVIDIA's either]
"""


def test_gpus_of_the_known_chips_only():
    assert gpus(DATABASE, ["GM204", "GA100", "GA102", "GH100", "GB100", "GB203"]) == [
        {"chip": "GA102GL", "devices": {"2235": "A40"}},
        {"chip": "GB203M", "devices": {"2C19": "GeForce RTX 5080 Max-Q / Mobile"}},
        {"chip": "GH100", "devices": {"2336": "GH100"}},
        {"chip": "GM204GL", "devices": {"13F2": "Tesla M60"}, "vgpus": {"13F2": {"114D": "GRID M60-1Q"}}},
    ]


def test_what_is_written_is_what_was_found():
    rows = gpus(DATABASE, chips())
    written = yaml.safe_load(render(version_of(DATABASE), rows))
    assert written["database"] == "2026.10.24"
    assert [{key: value for key, value in row.items() if key != "sources"} for row in written["rows"]] == rows


def test_the_table_is_as_the_program_writes_it():
    """Nobody edited it by hand."""
    text = (TABLES / "pci_ids.yml").read_text(encoding="utf-8")
    table = yaml.safe_load(text)
    assert render(table["database"], table["rows"]) == text


def test_something_else_than_the_database(tmp_path):
    (tmp_path / "other").write_text("10de  NVIDIA\n")
    with pytest.raises(SystemExit, match="not a PCI ID database"):
        main([str(tmp_path / "other")])
