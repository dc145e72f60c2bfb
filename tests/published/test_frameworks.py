# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables against the package index: which published releases they lack. `make tables` adds them."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.cupy import packages
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import PACKAGES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import NoAnswer

from tools.tables import cupy, document, extensions, horovod, jax, nvidia, tensorflow, torch
from tools.tables.__main__ import INDEX, TABLE, TABLES, pythons


def published(name, rows):
    """What the index has, with the Pythons of the wheels; a silent index ends a test."""
    try:
        return INDEX.wheel_pythons(name, pythons(rows))
    except NoAnswer as problem:
        pytest.skip(f"the package index does not answer: {problem}")


def test_every_release_of_tensorflow_stands_with_its_pythons():
    rows = document.read(TABLES / "tensorflow.yml")["rows"]
    never = pytest.fail
    assert tensorflow.update(rows, published("tensorflow", rows), lambda version, python: never(version)) == [], (
        "run: make tables"
    )


def test_every_release_of_cupy_stands_with_its_pythons():
    rows = document.read(TABLES / "cupy.yml")["rows"]
    found = {name: published(name, rows) for name in packages(rows)}
    assert cupy.update(rows, found, lambda package, release: None) == [], "run: make tables"


def test_every_release_of_jax_has_a_row():
    rows = document.read(TABLES / "jax.yml")["rows"]
    asked = published("jax", rows)
    assert jax.missing(rows, asked) == [], "run: make tables"


def test_every_stable_release_of_pytorch_has_a_row():
    rows = document.read(TABLE)["rows"]
    try:
        published = INDEX.releases("torch", pythons(rows))
    except NoAnswer as problem:
        pytest.skip(f"the package index does not answer: {problem}")
    assert torch.missing(rows, published) == [], "run: make tables"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_release_of_what_stands_on_pytorch_has_a_row(package):
    rows = document.read(TABLES / f"{package.table}.yml")["rows"]
    asked = published(package.name, document.read(TABLE)["rows"])
    assert extensions.missing(rows, asked, package) == [], "run: make tables"


def test_every_wheel_of_cudnn_and_nccl_is_listed():
    rows = document.read(TABLES / "nvidia_wheels.yml")["rows"]
    try:
        found = {name: INDEX.releases(name, nvidia.PYTHONS) for name in nvidia.PACKAGES}
    except NoAnswer as problem:
        pytest.skip(f"the package index does not answer: {problem}")
    assert nvidia.missing(rows, found) == [], "run: make tables"


def test_the_newest_release_of_horovod_has_a_row():
    rows = document.read(TABLES / "horovod.yml")["rows"]
    assert horovod.missing(rows, published("horovod", document.read(TABLE)["rows"])) == [], (
        "compile it, and write its row"
    )
