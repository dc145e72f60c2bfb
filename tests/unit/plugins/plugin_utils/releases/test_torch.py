# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of PyTorch says what its metadata tells, and what it does not."""

from dataclasses import replace

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.torch import new_row

DAY = "2026-11-23"


def test_a_new_row_says_what_is_not_known(release):
    row = new_row(release, DAY)
    assert list(row) == [
        "version", "released", "python", "glibc", "platforms", "torchvision", "builds", "read", "unverified", "sources",
    ]  # fmt: skip
    assert (row["glibc"], row["unverified"], row["read"], row["sources"]) == (None, ["glibc"], DAY, ["P3"])
    assert row["builds"] == [
        {
            "tag": "cu124", "cuda": "12.4", "cudnn": "9.1.0.70", "nccl": "2.21.5", "sass": None, "ptx": None,
            "default": True, "unverified": ["sass", "ptx"],
        }
    ]  # fmt: skip


def test_no_row_without_a_known_cuda(release):
    assert new_row(replace(release, requires=()), DAY) is None
