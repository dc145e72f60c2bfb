# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release a constraint takes, and the rows that are made of its metadata; the index is one of this test's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import NoAnswer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.rows import READERS, NoRelease, published_rows
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import FRAMEWORKS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

CHECKOUT = Path(__file__).resolve().parents[5]
DAY = "2026-12-03"
ARCHES = ("x86_64", "aarch64")
PLUGIN = [f'nvidia-{name}-cu13>=13.0; extra == "with-cuda"' for name in ("cuda-runtime", "cudnn", "nccl", "cuda-nvcc")]
JAX = [
    "numpy>=2.1", "ml_dtypes>=0.5.0",
    *(f'{name}=={one}; extra == "cuda{cuda}"' for cuda, one in (("13", "0.99.0"), ("14", "0.99.0"))
      for name in ("jaxlib", f"jax-cuda{cuda}-plugin[with-cuda]")),
]  # fmt: skip
AND_CUDA = [
    f'nvidia-{name}-cu13>={low}; extra == "and-cuda"'
    for name, low in (("cuda-runtime", "13.1.80"), ("cublas", "13.1"), ("cudnn", "9.20.0"), ("nccl", "2.29"))
]


class Index:
    """What an index has: by package and release, the Pythons of the wheels, and what they require."""

    def __init__(self, **packages):
        self.packages = {name.replace("_", "-"): found for name, found in packages.items()}

    def releases(self, name, pythons):
        found = {one: told for one, told in self.packages.get(name, {}).items() if set(told[0]) & set(pythons)}
        if not found:
            raise NoAnswer(name)
        return dict.fromkeys(found, "3.12")

    def lock(self, name, release, python):
        pythons, _requires = self.packages[name][release]
        if python not in pythons:
            raise NoAnswer(python)
        tags = [f"cp3{one[2:]}-cp3{one[2:]}-manylinux_2_28_{arch}" for one in pythons for arch in ARCHES]
        wheels = (
            f'{{ url = "https://index/{name.replace("-", "_")}-{release}-{tag}.whl", upload-time = 2026-12-01T10:00:00Z }}'
            for tag in tags
        )
        return f'[[packages]]\nname = "{name}"\nwheels = [{", ".join(wheels)}]\n'

    def requirements(self, name, release, python, platform=None):
        return self.packages[name][release][1]

    def metadata(self, name, release, python, platform=None):
        return {"requires_dist": self.packages[name][release][1], "requires_python": ">=3.11"}


def rows(name, constraint, **packages):
    found = published_rows(Index(**packages), load(), name, constraint, DAY)
    assert {(one["component"], one["source"], one["read"]) for one in found} <= {(name, "package index", DAY)}
    return [(one["version"], one["row"]) for one in found]


@pytest.mark.parametrize(
    ("constraint", "release"),
    [("2.99", "2.99.1"), ("2.99.0", "2.99.0"), (">=2.99,<3", "2.99.1"), ("3", "3.0.0")],
    ids=["a prefix", "a release", "a range", "one for another Python than the first"],
)
def test_the_newest_release_that_a_constraint_takes(constraint, release):
    cuda = ["nvidia-cuda-runtime-cu12==12.8.90"]
    torch = {"2.99.0": (["3.12"], cuda), "2.99.1": (["3.12", "3.13"], cuda), "3.0.0": (["3.14"], cuda)}
    assert [version for version, _row in rows("pytorch", constraint, torch=torch)] == [release]


def test_no_release_is_another_thing_than_no_answer():
    with pytest.raises(NoRelease):
        rows("pytorch", "9", torch={"2.99.0": (["3.12"], [])})
    with pytest.raises(NoAnswer):
        rows("pytorch", "9")


def test_a_release_that_does_not_tell_its_cuda_has_no_row():
    assert rows("pytorch", "2.99", torch={"2.99.0": (["3.12"], ["numpy"])}) == []


def test_a_release_of_a_minor_that_is_known_is_like_the_others_of_it():
    known = load().subjects["tensorflow"]["rows"][-1]
    release = f"{known['version']}.99"
    [(version, row)] = rows("tensorflow", release, tensorflow={release: (["3.12", "3.13"], [])})
    assert row == {**known, "releases": [version], "python": ["3.12", "3.13"]}


def test_a_new_minor_stands_on_what_its_extra_requires():
    [(_version, row)] = rows("tensorflow", "2.99", tensorflow={"2.99.0": (["3.13"], AND_CUDA)})
    assert (row["cuda"], row["cudnn"], row["glibc"], row["python"], row["sass"]) == (
        "13.1", "9.20", "2.28", ["3.13"], None,
    )  # fmt: skip


def test_a_row_for_each_package_of_cupy_that_has_the_release():
    found = {"99.1.0": (["3.12"], ["numpy<3,>=2.2"])}
    others = {"cupy_cuda11x": {"13.0.0": (["3.12"], [])}, "cupy_cuda12x": {"99.0.0": (["3.12"], []), **found}}
    made = rows("cupy", "99", cupy_cuda13x=found, **others)
    assert [row["wheels"] for _version, row in made] == [{"cupy-cuda12x": ["99.1.0"]}, {"cupy-cuda13x": ["99.1.0"]}]
    assert [(row["numpy"], row["min_cc"], row["python"]) for _version, row in made] == [(">=2.2", None, ["3.12"])] * 2


def test_a_plugin_of_jax_for_a_cuda_that_no_rule_knows_is_left_out():
    plugin = {"0.99.0": (["3.12", "3.13"], PLUGIN)}
    parts = {"jaxlib": {"0.99.0": (["3.12"], [])}, "jax_cuda13_plugin": plugin, "jax_cuda14_plugin": plugin}
    [(_version, row)] = rows("jax", "0.99", jax={"0.99.0": (["3.11", "3.12"], JAX)}, jax_cuda12_plugin=plugin, **parts)
    assert (list(row["plugins"]), row["python"], row["numpy"]) == (["13"], ["3.12"], ">=2.1")


def test_a_framework_on_pytorch_names_the_one_it_takes():
    [(_version, row)] = rows("vllm", "0.99", vllm={"0.99.0": (["3.12"], ["torch==2.99.0"])})
    assert (row["torch"], row["arch"]) == ("==2.99.0", list(ARCHES))


def test_readers_are_of_frameworks_whose_wheels_tell_enough():
    without = {"deepspeed", "flash_attn", "horovod", "nvshmem", "transformer_engine", "triton"}
    assert set(FRAMEWORKS) - set(READERS) == without


@pytest.mark.parametrize(
    "page", ["docs/stack.md", "plugins/modules/resolve_stack.py", "roles/stack/meta/argument_specs.yml"]
)
def test_pages_that_list_what_is_read_from_the_index_list_all(page):
    text = " ".join((CHECKOUT / page).read_text(encoding="utf-8").split())
    (listed,) = re.findall(r"a release of (PyTorch[^.]+?) that ", text)
    assert {name.lower() for name in re.findall(r"\w+", listed)} - {"or", "and"} == set(READERS)
