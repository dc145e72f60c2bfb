# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from the metadata of a release."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release, glibc, pinned, wheels


def test_wheels_for_linux_tell_pythons_platforms_and_day(release):
    assert release.pythons == ["3.9", "3.10", "3.11", "3.12", "3.13"]
    assert release.platforms == {"x86_64": "manylinux1", "aarch64": "manylinux_2_28"}
    assert release.released == "2025-01-29"


def test_other_systems_and_pythons_without_the_lock_are_left_out(lock):
    assert {one.platform for one in wheels(lock)} == {"manylinux1", "manylinux_2_28"}
    free_threaded = lock.replace("cp313-cp313-", "cp313-cp313t-")
    assert "3.13" not in {one.python for one in wheels(free_threaded)}


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("manylinux_2_28", "2.28"), ("manylinux2014", "2.17"), ("manylinux1", None), ("linux", None)],
)
def test_glibc_of_a_tag(platform, expected):
    assert glibc(platform) == expected


def test_the_oldest_glibc_of_several_tags_counts(lock):
    both = lock.replace("manylinux1_x86_64", "manylinux_2_28_x86_64.manylinux2014_x86_64")
    assert Release("2.6.0", wheels(both)).glibc == "2.17"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch-1.13.0", ("11.7", "8.5.0.96", None, None)),
        ("torch-2.6.0", ("12.4", "9.1.0.70", "2.21.5", None)),
        ("torch-2.15.0", ("13.2.2", "9.26.0.51", "2.30.7", "3.7.2")),
    ],
)
def test_pinned_libraries(lock, requires, name, expected):
    found = Release(name, wheels(lock), tuple(requires[name]))
    assert (found.cuda, found.cudnn, found.nccl, found.nvshmem) == expected


@pytest.mark.parametrize(
    "text", ["torch (>=2.14.0)", "torch", "torch==2.4.*", "torch==2.4.0; sys_platform == 'darwin'"]
)
def test_only_an_exact_version_for_linux_is_a_pin(text):
    assert pinned([text], "torch") is None


def test_a_companion_that_takes_many_releases_belongs_to_none(requires):
    assert pinned(requires["torchvision-0.29.2"], "torch") is None
