# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments import extras

STACK = {"kind": "k", "environments": [{"name": "main", "python": "3.10", "requirements": ["torch==2.4.1", "numpy"]}]}


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ([], []),
        (["catboost", "mpi4py>=4.1", "torchvision", "numpy<2", "accelerate[extra]==1.15.0"], []),
        ("catboost, mpi4py", []),
        (["torch"], ["package_chosen"]),
        (["lightning[extra]==2.6.6"], ["package_chosen"]),
        (["Torch==2.4.1", "horovod", "cupy-cuda12x"], ["package_chosen"] * 3),
        (["catboost @ https://example.org/catboost.whl"], ["package_no_requirement"]),
        (["catboost; python_version < '3.9'"], ["package_no_requirement"]),
        (["--index-url https://example.org"], ["package_no_requirement"]),
        (["git+https://example.org/x"], ["package_no_requirement"]),
        (3, []),
    ],
)
def test_what_can_be_asked_for(value, codes):
    assert [one.code for one in extras.problems(value)] == codes


def test_packages_are_requirements_once():
    found = extras.with_packages(STACK, ["catboost", "numpy"])
    assert found["environments"][0]["requirements"] == ["torch==2.4.1", "numpy", "catboost"]
    assert STACK["environments"][0]["requirements"] == ["torch==2.4.1", "numpy"]


def test_other_packages_are_another_request():
    """So that they are solved and installed where the environment is there already."""
    system = System("ubuntu", "22.04", "x86_64")
    digests = {
        request_digest(parse(Environment, extras.with_packages(STACK, packages)["environments"][0]), system)
        for packages in ([], ["catboost"], ["catboost==1.2.8"])
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("requirements", "modules"),
    [
        (["torch==2.4.1", "numpy"], []),
        (["CatBoost==1.2.8", "mpi4py", "scikit-learn", "mpi4py>=4"], ["catboost", "mpi4py"]),
    ],
)
def test_modules_of_packages_that_are_known(requirements, modules):
    assert extras.modules(requirements) == modules
