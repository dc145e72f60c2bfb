# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of frameworks that stand on PyTorch, from what the index says of their one package."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import (
    Found,
    Package,
    cuda_of,
    files,
    new_row,
    pinning,
    pip_platform,
    required,
    takes,
)

PACKAGE = Package("vllm", "vllm", "vLLM", "0.9.0", "V2")
STABLE = "vllm-0.33.0-cp38-abi3-manylinux_2_28_x86_64.whl"
ARM = "vllm-0.33.0-cp38-abi3-manylinux_2_28_aarch64.whl"
BUILT = "triton-3.1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
PURE = "lightning-2.6.6-py3-none-any.whl"
LOCK = """
[[packages]]
name = "vllm"
sdist = {{ url = "https://index/vllm-0.33.0.tar.gz", upload-time = 2026-11-02T10:12:56Z }}
wheels = [
    {{ url = "https://index/{}", upload-time = 2026-11-03T10:13:18Z }},
    {{ url = "https://index/vllm-0.33.0-cp38-abi3-win_amd64.whl", upload-time = 2026-11-04T10:13:18Z }},
]
"""


def found(**changes):
    told = {
        "pythons": ["3.11", "3.12"],
        "wheels": (STABLE, ARM),
        "released": "2026-11-02",
        "requires": ("torch==2.14.0",),
    }
    return Found(**{"version": "0.33.0", **told, **changes})


def row(**changes):
    told = {
        "version": "0.33.0",
        "released": "2026-11-02",
        "python": ["3.11", "3.12"],
        "glibc": "2.28",
        "arch": ["x86_64", "aarch64"],
    }
    told = {**told, "torch": "==2.14.0", "read": "2026-11-24", "sources": ["V2"], **changes}
    return {name: value for name, value in told.items() if value is not ...}


def test_wheels_for_linux_count_and_the_first_day():
    assert files(LOCK.format(STABLE)) == ((STABLE,), "2026-11-02")
    assert files(LOCK.format(PURE)) == ((PURE,), "2026-11-02")


@pytest.mark.parametrize(
    ("wheel", "python", "fits"),
    [
        (STABLE, "3.8", True), (STABLE, "3.14", True), (STABLE, "3.7", False),
        (BUILT, "3.12", True), (BUILT, "3.13", False), (PURE, "3.9", True),
        ("triton-3.9.0-cp314-cp314t-manylinux_2_27_x86_64.whl", "3.14", False),
    ],
)  # fmt: skip
def test_which_pythons_a_wheel_is_for(wheel, python, fits):
    assert takes(wheel, python) is fits


@pytest.mark.parametrize(
    ("wheels", "platform"),
    [((ARM, STABLE), "manylinux_2_28_x86_64"), ((BUILT,), "manylinux2014_x86_64"), ((PURE,), None)],
)
def test_the_platform_that_pip_is_asked_with(wheels, platform):
    assert pip_platform(wheels) == platform


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, {}),
        ({"wheels": (STABLE,)}, {"arch": ["x86_64"]}),
        ({"wheels": (PURE,)}, {"glibc": ...}),
        ({"wheels": (BUILT,)}, {"python": ["3.12"], "glibc": "2.17", "arch": ["x86_64"]}),
        (
            {"wheels": ("vllm-0.9.0-cp38-abi3-manylinux1_x86_64.whl",)},
            {"glibc": None, "arch": ["x86_64"]},
        ),
        ({"requires": ("numpy", "torch<4.0,>=2.1.0; extra == 'x'", "torch<4.0,>=2.1.0")}, {"torch": ">=2.1.0,<4.0"}),
    ],
    ids=["both", "x86_64 alone", "no compiled code", "one Python", "a tag without glibc", "a range"],
)
def test_a_row_is_what_the_index_says(changes, told):
    assert new_row(found(**changes), PACKAGE, "2026-11-24") == row(**told)


def test_a_row_of_source_takes_the_range_that_is_kept_by_hand():
    package = Package("deepspeed", "deepspeed", "DeepSpeed", "0.18.0", "Q1", torch=">=2.0.0")
    made = new_row(found(wheels=(), requires=()), package, "2026-11-24")
    assert made == row(glibc=..., torch=">=2.0.0", sources=["Q1"])


@pytest.mark.parametrize(
    "changes",
    [{"wheels": ()}, {"wheels": (ARM,)}, {"requires": ()}, {"pythons": ["3.7"]}],
    ids=["no wheels", "not for x86_64", "no PyTorch", "no Python"],
)
def test_there_is_no_row_where_nothing_could_be_installed(changes):
    assert new_row(found(**changes), PACKAGE, "2026-11-24") is None


@pytest.mark.parametrize(
    ("requires", "torch"),
    [
        (['torch==2.9.0; platform_machine == "x86_64"'], "==2.9.0"),
        (['torch==2.9.0; platform_machine == "ppc64le"'], None),
        (["torch"], ">=0"),
        (["torchvision==0.24.0"], None),
    ],
)
def test_what_is_required_on_a_server(requires, torch):
    assert required(requires, "torch", "3.12") == torch


@pytest.mark.parametrize(
    ("pins", "requirement"),
    [
        ({"2.5.0": "==3.1.0", "2.5.1": "~=3.1.0", "2.6.0": "==3.2.0"}, "torch>=2.5.0,<=2.5.1"),
        ({"2.10.0": "==3.1.0", "2.9.0": None}, "torch==2.10.0"),
        ({"2.10.0": "==3.1.0", "2.9.1": "==3.2.0", "2.9.0": "==3.1.0"}, None),
        ({"2.10.0": "==3.2.0", "2.9.0": None}, None),
    ],
    ids=["neighbours", "one", "with another in between", "none"],
)
def test_the_releases_that_pin_a_release(pins, requirement):
    assert pinning(pins, "3.1.0") == requirement


@pytest.mark.parametrize(
    ("requires", "cuda"),
    [
        (["nvidia-cutlass-dsl[cu13]==4.8.0", "humming-kernels[cu13]==0.1.19", "torch==2.14.0"], "13"),
        (["nvidia-cudnn-cu12==9.10.2.21"], "12"),
        (["nvidia-cutlass-dsl[cu13]==4.8.0", "nvidia-nccl-cu12==2.27.7"], None),
        (['nvidia-deepstream-videodecode-cu13>=9.0.2; extra == "deepstream"', "torch==2.8.0"], None),
    ],
    ids=["by an extra", "by a name", "two of them", "only with an extra of its own"],
)
def test_the_cuda_that_requirements_are_named_for(requires, cuda):
    assert cuda_of(requires) == cuda
    package = Package("vllm", "vllm", "vLLM", "0.9.0", "V2", compiled=True)
    row = new_row(found(requires=("torch==2.14.0", *requires)), package, "2026-11-24")
    assert row.get("cuda") == cuda
