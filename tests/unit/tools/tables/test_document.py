# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables are written as they are kept by hand."""

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.torch import new_row

from tools.tables import document
from tools.tables.__main__ import TABLE


def test_an_unchanged_table_stays_the_same_to_the_byte(tmp_path):
    document.write(tmp_path / "torch.yml", document.read(TABLE))
    assert (tmp_path / "torch.yml").read_bytes() == TABLE.read_bytes()


def test_a_new_row_looks_like_the_others(tmp_path, release):
    path = tmp_path / "torch.yml"
    path.write_text("---\n# kept\nrows: []\n", encoding="utf-8")
    table = document.read(path)
    table["rows"] = document.styled([new_row(release, "2026-11-23")])
    document.write(path, table)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:7] == [
        "---",
        "# kept",
        "rows:",
        '  - version: "2.6.0"',
        '    released: "2025-01-29"',
        '    python: ["3.9", "3.10", "3.11", "3.12", "3.13"]',
        "    glibc: null",
    ]
    assert "    platforms: {x86_64: manylinux1, aarch64: manylinux_2_28}" in lines
    assert "      - tag: cu124" in lines
