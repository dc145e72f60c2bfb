# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of JAX, from what the index says of jax, jaxlib and the plugins."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.jax import Found, majors, new_row, newest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release, Wheel

# Requires-Dist of jax 0.10.2 and 0.4.30, as far as it is looked at.
REQUIRES = (
    "jaxlib<=0.10.2,>=0.10.1", "ml_dtypes>=0.5.0", "numpy>=2.0",
    'jaxlib<=0.10.2,>=0.10.2; extra == "cuda12"', 'jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == "cuda12"',
    'jaxlib<=0.10.2,>=0.10.2; extra == "cuda13"', 'jax-cuda13-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == "cuda13"',
    'jax-cuda13-plugin<=0.10.2,>=0.10.2; extra == "cuda13-local"',
)  # fmt: skip
OLD = (
    "numpy >=1.22",
    'numpy >=1.26.0 ; python_version >= "3.12"',
    "jax-cuda12-plugin[with_cuda] <=0.4.37,>=0.4.36 ; extra == 'cuda12'",
)
PLUGIN = (
    'nvidia-cuda-runtime-cu12>=12.1.105; extra == "with-cuda"', 'nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"',
    'nvidia-nccl-cu12>=2.18.1; extra == "with-cuda"', 'nvidia-cuda-nvcc-cu12>=12.6.85; extra == "with-cuda"',
)  # fmt: skip
LIBRARIES = {"cuda": ">=12.1.105", "cudnn": ">=9.8,<10.0", "nccl": ">=2.18.1", "nvcc": ">=12.6.85"}


def release(
    version, pythons=("3.12", "3.13"), arches=("x86_64", "aarch64"), platform="manylinux_2_27", requires=PLUGIN
):
    day = datetime.date(2026, 6, 1)
    return Release(
        version, tuple(Wheel(python, platform, arch, day) for python in pythons for arch in arches), requires
    )


def found(**changes):
    parts = {"jaxlib": release("0.10.2", requires=()), "plugins": {"12": release("0.10.2"), "13": release("0.10.2")}}
    return Found(version="0.10.2", pythons=["3.12", "3.13", "3.14"], requires=REQUIRES, **{**parts, **changes})


def test_a_row_has_what_all_parts_have():
    plugins = {"12": release("0.10.2"), "13": release("0.10.2", pythons=("3.13", "3.14"))}
    assert new_row(found(plugins=plugins), "2026-11-23") == {
        "version": "0.10.2", "released": "2026-06-01", "python": ["3.13"], "glibc": "2.27",
        "arch": ["x86_64", "aarch64"],
        "plugins": {"12": LIBRARIES, "13": LIBRARIES}, "numpy": ">=2.0", "ml_dtypes": ">=0.5.0", "read": "2026-11-23",
        "sources": ["J1"],
    }  # fmt: skip


def test_architectures_are_those_of_every_plugin():
    plugins = {"12": release("0.4.38", arches=("x86_64",)), "13": release("0.10.2")}
    assert new_row(found(plugins=plugins), "2026-11-23")["arch"] == ["x86_64"]


@pytest.mark.parametrize(
    "plugins",
    [
        {},
        {"12": release("0.10.2", arches=("aarch64",))},
        {"12": release("0.10.2", platform="linux")},
        {"12": release("0.10.2", requires=PLUGIN[:2])},
    ],
    ids=["no plugin", "not for x86_64", "a tag without glibc", "a library that is not told"],
)
def test_there_is_no_row_where_something_is_not_told(plugins):
    assert new_row(found(plugins=plugins), "2026-11-23") is None


def test_plugins_go_by_the_extras_that_bring_their_libraries():
    assert majors(REQUIRES) == ["12", "13"]
    assert newest(REQUIRES, "jax-cuda13-plugin", "13", ["0.10.1", "0.10.2", "0.11.0"]) == "0.10.2"
    assert newest(OLD, "jax-cuda12-plugin", "12", ["0.4.35", "0.4.36"]) == "0.4.36"
    assert newest(OLD, "jax-cuda12-plugin", "12", ["0.4.35"]) is None
