# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module is documentation: its examples work, and what it says it returns is returned."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.modules import resolve_stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import OPTIONAL
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

EXAMPLES = yaml.safe_load(resolve_stack.EXAMPLES)
OPTIONS = yaml.safe_load(resolve_stack.DOCUMENTATION)["options"]
RETURN = yaml.safe_load(resolve_stack.RETURN)
QUESTION = (
    "os",
    "arch",
    "gpus",
    "python",
    "profile",
    "request",
    "environments",
    "ansible_core",
    "suites",
    "nvswitches",
    "kernels",
)
ANSWERED = [one for one in EXAMPLES if "os" in one["allreduce.gpu.resolve_stack"]]


def answer(example):
    options = example["allreduce.gpu.resolve_stack"]
    return resolve({"ansible_core": "2.19", **{name: options[name] for name in QUESTION if name in options}})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one["name"])
def test_an_example_uses_documented_options(example):
    assert set(example["allreduce.gpu.resolve_stack"]) <= set(OPTIONS)


@pytest.mark.parametrize("example", ANSWERED, ids=lambda one: one["name"])
def test_an_example_resolves(example):
    refused = example["allreduce.gpu.resolve_stack"].get("on_conflict") == "report"
    assert (answer(example)["stack"] is None) == refused


def test_every_reference_system_has_an_example():
    assert {f"S{number}" for number in range(4)} <= {example["name"].partition(",")[0] for example in ANSWERED}


def shape(documented, found, path):
    """Keys that are documented and not returned, or returned and not documented, at any depth."""
    wrong = [f"{path}.{name}" for name in set(documented) ^ set(found)]
    for name in set(documented) & set(found):
        inner = documented[name].get("contains")
        values = found[name] if isinstance(found[name], list) else [found[name]]
        wrong += [text for value in values if inner and value for text in shape(inner, value, f"{path}.{name}")]
    return wrong


OWNER, IMEX, STREAM = ".stack.driver.owner", ".stack.imex", ".stack.driver.module_stream"
EVERYTHING = {one.name: "latest" for one in PACKAGED if one.name in OPTIONAL}
# What only a stack has that was asked for it.
ASKED = {f".stack.{name}" for name in set(EVERYTHING) - set(resolve({"os": "debian 12"})["stack"])}
VENDOR = {"driver_owner": {"code": "dgx_os", "name": "DGX OS"}, "installed_driver": {"version": "580.95.05"}}


@pytest.mark.parametrize(
    ("question", "optional"),
    [
        ({"os": "rocky 8", "gpus": ["A100 SXM4 80GB"] * 8, "request": {"horovod": "0.28.1"}}, {OWNER, IMEX, *ASKED}),
        ({"os": "ubuntu 22.04", "gpus": ["A40"], "request": EVERYTHING}, {STREAM, OWNER, IMEX}),
        ({"os": "debian 12", "request": {"driver": "535"}}, {STREAM, OWNER, IMEX, *ASKED}),
        ({"os": "ubuntu 24.04", "arch": "aarch64", "gpus": ["GB200"] * 4}, {STREAM, OWNER, *ASKED}),
        ({"os": "ubuntu 24.04", "gpus": ["A40"], **VENDOR}, {STREAM, IMEX, *ASKED}),
    ],
)
def test_what_is_returned_is_documented(question, optional):
    found = resolve({**question, "ansible_core": "2.16"})
    assert found["stack"], found["conflicts"]
    wrong = set(shape(RETURN, found, "")) - {*optional, ".stack.published", ".stack.update", ".explanation"}
    assert not wrong, "returned and not in RETURN of plugins/modules/resolve_stack.py, or the other way round"


def test_a_refusal_is_documented():
    found = resolve({"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"driver": "535", "pytorch": "2.15.0"}})
    assert shape(RETURN, {**found, "stack": None}, "") == [".explanation"]
