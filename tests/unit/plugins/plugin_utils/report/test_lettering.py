# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.lettering import cut, width, wrapped


@pytest.mark.parametrize(
    "text", ["A100-SXM4-80GB", "InfiniBand", "mmmmmmmmmmmm", "illilli", "0000:45:00.0", "漢字" * 9]
)
@pytest.mark.parametrize("room", [30, 60, 90, 200])
def test_cut_text_fits(text, room):
    assert width("detail", cut("detail", 0, 0, text, room).text) <= room


def test_what_fits_stays():
    assert cut("name", 1, 2, "GPU0", 80).text == "GPU0"
    assert cut("name", 1, 2, "GPU0", 80).whole == ""


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("A40", 90, ["A40"]),
        ("A100-SXM4-80GB", 90, ["A100-SXM4-", "80GB"]),
        ("H100 80GB HBM3", 90, ["H100 80GB", "HBM3"]),
        ("A100 · PCIe x16", 60, ["A100", "PCIe x16"]),
        ("mmmmmmmmmmmmm", 60, ["mmmmmmmmmmmmm"]),
    ],
)
def test_text_is_broken_at_blanks_and_behind_hyphens(text, room, lines):
    assert wrapped("detail", text, room) == lines


def test_bold_text_is_wider():
    assert width("fault", "down") > width("detail", "down")


def test_a_name_of_any_length_is_cut_in_no_time():
    """A node may say a GPU's name of a million letters: looked at again and again, they kept the report busy for days."""
    begun = time.process_time()
    assert len(cut("name", 0, 0, "x" * 30_000, 80).text) < 20
    assert [len(line) for line in wrapped("name", "a b" * 10_000, 80)][0] < 20
    assert time.process_time() - begun < 2
