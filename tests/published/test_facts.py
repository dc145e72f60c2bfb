# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hundred random facts of the tables against their source, the package index. FACTS_SEED repeats a choice."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.cupy import numpy_floor
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import NoAnswer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.jax import new_row, read
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.tensorflow import pins
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import pinned, release_of
from packaging.version import Version

from tools.tables import document
from tools.tables.__main__ import INDEX, TABLES, pythons

NUMBER = 100
READERS = 6
# What a person verified elsewhere and the index does not tell is not a fact of the index.
ROW = ("released", "python", "glibc", "platforms")
BUILD = ("cuda", "cudnn", "nccl")
# The first release that requires NVIDIA's wheels; earlier ones have CUDA inside, and the index does not tell which.
FIRST_WITH_PINS = Version("1.13")
COMPANIONS = ("torchvision", "torchaudio")
JAX = ("released", "python", "glibc", "arch", "numpy", "ml_dtypes")
JAX_PACKAGES = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin")


class Fact(NamedTuple):
    """A cell of a table; ask: what its source says."""

    where: str
    value: Any
    ask: Callable[[], Any]


def rows_of(table: str) -> list[Mapping]:
    return document.read(TABLES / f"{table}.yml")["rows"]


def verified(row: Mapping, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The cells that have a value which the table does not call unverified."""
    unverified = row.get("unverified", ())
    yield from ((name, row[name]) for name in names if row.get(name) is not None and name not in unverified)


def of_pytorch() -> Iterator[Fact]:
    for row in rows_of("torch"):
        release = row["version"]
        build = [one for one in row["builds"] if one.get("default")][0]
        pinned_ones = BUILD if Version(release) >= FIRST_WITH_PINS else ()
        for name, value in [*verified(row, ROW), *verified(build, pinned_ones)]:
            yield Fact(f"PyTorch {release} {name}", value, partial(cell, "torch", release, row["python"][0], name))
        for name, value in verified(row, COMPANIONS):
            yield Fact(f"PyTorch {release} {name} {value}", release, partial(taken, name, str(value), row["python"][0]))


def of_tensorflow() -> Iterator[Fact]:
    for row in rows_of("tensorflow"):
        if "releases" in row.get("unverified", ()):
            continue
        for release in row["releases"]:
            for name, value in verified(row, ("python", "glibc")):
                yield Fact(
                    f"TensorFlow {release} {name}", value, partial(cell, "tensorflow", release, row["python"][0], name)
                )
        if row.get("pins"):
            newest = row["releases"][-1]
            yield Fact(
                f"TensorFlow {newest} pins", row["pins"], partial(libraries, "tensorflow", newest, row["python"][0])
            )


def of_cupy() -> Iterator[Fact]:
    for row in rows_of("cupy"):
        for package, releases in row["wheels"].items():
            for release in releases:
                yield Fact(f"{package} {release} python", row["python"], partial(wheels, package, release))
                for name, value in verified(row, ("numpy",)):
                    yield Fact(
                        f"{package} {release} {name}", value, partial(numpy, package, release, row["python"][-1])
                    )


def of_jax() -> Iterator[Fact]:
    for row in rows_of("jax"):
        ask = partial(jax_row, row["version"])
        for name, value in verified(row, JAX):
            yield Fact(f"JAX {row['version']} {name}", value, partial(column, ask, name))
        for cuda, libraries in row["plugins"].items():
            yield Fact(f"JAX {row['version']} CUDA {cuda}", libraries, partial(plugin, ask, cuda))


def column(ask: Callable[[], Mapping], name: str) -> Any:
    return ask()[name]


def plugin(ask: Callable[[], Mapping], cuda: str) -> Any:
    return ask()["plugins"][cuda]


@cache
def jax_row(version: str) -> Mapping:
    """The row that `make tables` would write."""
    known = {name: published(name) for name in JAX_PACKAGES}
    return new_row(read(INDEX, version, known), "") or {}


@cache
def release(name: str, version: str, python: str) -> Any:
    return release_of(INDEX, version, [python], name)


def cell(name: str, version: str, python: str, column: str) -> Any:
    found = release(name, version, python)
    return getattr(found, {"python": "pythons"}.get(column, column))


def taken(name: str, version: str, python: str) -> str | None:
    """The PyTorch that a companion takes."""
    return pinned(INDEX.requirements(name, version, python), "torch", python)


def libraries(name: str, version: str, python: str) -> dict[str, str]:
    return pins(release(name, version, python).requires)


@cache
def published(package: str) -> dict[str, list[str]]:
    return INDEX.wheel_pythons(package, pythons(rows_of("cupy")))


def wheels(package: str, version: str) -> list[str]:
    return published(package)[version]


def numpy(package: str, version: str, python: str) -> str | None:
    return numpy_floor(INDEX.requirements(package, version, python))


def answer(fact: Fact) -> Any:
    try:
        return fact.ask()
    except NoAnswer as problem:
        return str(problem)


def test_a_hundred_random_facts_are_those_of_the_index():
    try:
        published("cupy-cuda12x")
    except NoAnswer as problem:
        pytest.skip(f"the package index does not answer: {problem}")
    facts = [*of_pytorch(), *of_tensorflow(), *of_cupy(), *of_jax()]
    seed = int(os.environ.get("FACTS_SEED") or random.randrange(10**6))
    chosen = random.Random(seed).sample(facts, NUMBER)
    jax = sum(one.where.startswith("JAX") for one in chosen)
    print(f"{NUMBER} of {len(facts)} facts, {jax} of JAX, FACTS_SEED={seed}")
    with ThreadPoolExecutor(READERS) as side:
        answers = list(side.map(answer, chosen))

    wrong = {one.where: (one.value, said) for one, said in zip(chosen, answers, strict=True) if one.value != said}
    assert wrong == {}, f"{len(wrong)} of {NUMBER} with FACTS_SEED={seed}, as (table, index)"
