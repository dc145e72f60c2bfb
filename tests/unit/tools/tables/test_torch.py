# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of data/stack/torch.yml: written from the index, without losing what a person verified."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.torch import new_row

from tools.tables.document import styled
from tools.tables.torch import missing, update

DAY = "2026-11-23"


@pytest.fixture
def row():
    """A row as a person wrote it."""
    build = {"tag": "cu124", "cuda": "12.4", "cudnn": "9.1.0.70", "nccl": None, "sass": ["5.0", "9.0"], "ptx": None}
    build |= {"default": True, "unverified": ["nccl", "cudnn"]}
    row = {"version": "2.6.0", "python": ["3.9", "3.10", "3.11", "3.12", "3.13"], "glibc": "2.17"}
    return styled({**row, "builds": [build], "unverified": ["glibc"], "note": "by hand", "sources": ["S13"]})


def test_an_update_fills_and_verifies(row, release):
    said = update(row, release, DAY)
    assert said[0] == "released None -> 2025-01-29"
    assert "cudnn 9.1.0.70 verified" in said
    assert "nccl None -> 2.21.5" in said
    assert row["builds"][0]["nccl"] == "2.21.5"
    assert "unverified" not in row["builds"][0]
    assert (row["read"], row["sources"], row["torchvision"]) == (DAY, ["S13", "P3"], "0.21.0")


def test_a_pin_that_a_build_lacks_gets_its_place(row, release):
    requires = (*release.requires, "nvidia-nvshmem-cu12==3.3.20; platform_system == 'Linux'")
    said = update(row, replace(release, requires=requires), DAY)
    assert "nvshmem None -> 3.3.20" in said
    assert list(row["builds"][0])[3:6] == ["nccl", "nvshmem", "sass"]


def test_what_the_index_does_not_tell_stays(row, release):
    update(row, release, DAY)
    assert (row["glibc"], row["unverified"], row["note"]) == ("2.17", ["glibc"], "by hand")
    assert row["builds"][0]["sass"] == ["5.0", "9.0"]


def test_a_verified_value_stays_and_the_difference_is_said(row, release):
    update(row, release, DAY)
    row["builds"][0]["cuda"], before = "12.4.1", DAY
    assert update(row, release, "2027-01-01") == ["cuda 12.4.1 stays, the index says 12.4"]
    assert (row["builds"][0]["cuda"], row["read"]) == ("12.4.1", before)


def test_a_newer_companion_replaces_the_older(row, release):
    update(row, release, DAY)
    newer = replace(release, companions={"torchvision": "0.21.1"})
    assert update(row, newer, "2027-01-01") == ["torchvision 0.21.0 -> 0.21.1"]
    assert row["read"] == "2027-01-01"


def test_a_second_update_changes_nothing(row, release):
    update(row, release, DAY)
    assert update(row, release, "2027-01-01") == []
    assert row["read"] == DAY


def test_a_new_row_needs_no_update(release):
    assert update(styled(new_row(release, DAY)), release, DAY) == []


def test_missing_releases():
    rows = [{"version": "1.12.1"}, {"version": "2.6.0"}]
    assert missing(rows, ["1.12.0", "1.13.0", "2.6.0", "2.10.0"]) == ["1.13.0", "2.10.0"]
