# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks of conda: what they name, what is wrong with them, and whose channels they use."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import conda_lock

DIGEST = "1" * 64
FORGE = "https://conda.anaconda.org/conda-forge"


def test_a_lock_is_read():
    text = "\n".join(
        [
            "# This file may be used to create an environment using:",
            "# platform: linux-64",
            "@EXPLICIT",
            "",
            FORGE + "/linux-64/python-3.12.4-h194c7f8_0_cpython.conda#sha256:" + DIGEST,
            FORGE + "/noarch/tzdata-2024a-h0c530f3_0.tar.bz2#" + DIGEST,  # as mamba 2.0 wrote it
            "file:///srv/c/linux-64/libjpeg-turbo-1%213.0-h2_1.conda#sha256:" + DIGEST,
        ]
    )
    packages, problems = conda_lock.parse(text)
    assert problems == []
    assert packages["python"] == {
        "url": FORGE + "/linux-64/python-3.12.4-h194c7f8_0_cpython.conda", "subdir": "linux-64", "version": "3.12.4",
        "build": "h194c7f8_0_cpython", "sha256": DIGEST,
    }  # fmt: skip
    assert {name: one["version"] for name, one in packages.items()} == {
        "python": "3.12.4", "tzdata": "2024a", "libjpeg-turbo": "1!3.0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("numpy=1.26", "conda_lock_no_package"),
        ("/srv/c/linux-64/a-1-0.conda#sha256:" + DIGEST, "conda_lock_no_package"),
        (FORGE + "/linux-64/a-1-0.whl#sha256:" + DIGEST, "conda_lock_no_package"),
        (FORGE + "/linux-64/a-1-0.conda#sha256:" + DIGEST[1:], "conda_lock_no_package"),
        (FORGE + "/linux-64/a-1-0.conda", "conda_lock_no_checksum"),
        (FORGE + "/linux-64/b-2-0.conda#sha256:" + DIGEST, "conda_lock_twice"),
        # Of which a file name would lead elsewhere, here and on the server.
        (FORGE + "/linux-64/..%2F..%2F..%2Fetc%2Fx-1-0.conda#sha256:" + DIGEST, "conda_lock_no_package"),
        (FORGE + "/linux-64/a-1-0%2f..%2fb.conda#sha256:" + DIGEST, "conda_lock_no_package"),
        (FORGE + "/linux-64%2F..%2F..%2Fevil/a-1-0.conda#sha256:" + DIGEST, "conda_lock_no_package"),
        (FORGE + "/linux-64/a-1-0%00.conda#sha256:" + DIGEST, "conda_lock_no_package"),
        ("http://[x/linux-64/a-1-0.conda#sha256:" + DIGEST, "conda_lock_no_package"),
    ],
)
def test_a_line_that_is_none(line, code):
    text = "@EXPLICIT\n" + FORGE + "/linux-64/b-1-0.conda#sha256:" + DIGEST + "\n" + line
    assert [one["code"] for one in conda_lock.parse(text)[1]] == [code]


def test_what_is_written_is_read():
    addresses = {FORGE + "/noarch/b-1-0.conda": DIGEST, FORGE + "/linux-64/a-1-0.conda": "2" * 64}
    text = conda_lock.render(addresses, "linux-64")
    assert text.startswith("# platform: linux-64\n@EXPLICIT\n" + FORGE + "/linux-64/a-1-0.conda#sha256:2")
    packages, problems = conda_lock.parse(text)
    assert problems == [] and {one["url"]: one["sha256"] for one in packages.values()} == addresses


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("conda-forge", False),
        ("bioconda", False),
        ("defaults", True),
        ("anaconda", True),
        ("pkgs/main", True),
        ("https://repo.anaconda.com/pkgs/r", True),
        ("https://repo.anaconda.com/pkgs/main/linux-64", True),
        ("https://conda.anaconda.org/anaconda", True),
        ("https://conda.anaconda.org/t/abc-1/anaconda", True),
        ("https://conda.anaconda.org/t/abc-1/conda-forge", False),
        (FORGE, False),
        ("https://mirror.example.org/anaconda", False),
        ("file:///srv/main", False),
        ("http://[x", False),
    ],
)
def test_anaconda_s_own_channels(name, default):
    assert conda_lock.is_default(name) is default


def test_packages_of_another_platform():
    packages = {"a": {"subdir": "noarch"}, "b": {"subdir": "linux-64"}}
    assert conda_lock.foreign(packages, "linux-64") == []
    (found,) = conda_lock.foreign(packages, "linux-aarch64")
    assert (found["code"], found["subject"], found["detail"]) == (
        "conda_platform", "linux-64", {"expected": "linux-aarch64"},
    )  # fmt: skip
