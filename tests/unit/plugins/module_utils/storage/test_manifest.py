# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests as sha256sum writes them, and what is refused of them."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.manifest import parse

ONE, TWO = "a" * 64, "b" * 64


def test_text_binary_and_leading_dot():
    files, problems = parse(f"{ONE}  one.tar\n{TWO.upper()} *train/two  x.tar\n{ONE}  ./three\n", "SHA256SUMS")
    assert files == {"one.tar": ONE, "train/two  x.tar": TWO, "three": ONE} and problems == []


@pytest.mark.parametrize(
    "line",
    [
        ONE + "  /etc/passwd",
        ONE + "  ../one",
        ONE + "  train/../../one",
        ONE + "  train//one",
        ONE + "  .",
        ONE + "  SHA256SUMS",
        "\\" + ONE + "  new\\nline",
        ONE[:-1] + "  one",
        ONE + " one",
        ONE + "  o\x1bne",
        "",
        "SHA256 (one) = " + ONE,
    ],
)
def test_what_is_refused(line):
    files, (found,) = parse(f"{TWO}  good\n{line}\n", "SHA256SUMS")
    assert (found["code"], found["subject"], found["detail"]) == ("stage_no_entry", "SHA256SUMS", {"line": 2})
    assert files == {"good": TWO}


def test_a_file_has_one_checksum():
    assert [one["code"] for one in parse(f"{ONE}  x\n{TWO}  x\n", "M")[1]] == ["stage_no_entry"]
    assert parse(f"{ONE}  x\n{ONE}  x\n", "M") == ({"x": ONE}, [])


def test_nothing_to_copy():
    assert [one["code"] for one in parse("", "M")[1]] == ["stage_empty"]
