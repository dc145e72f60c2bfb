# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that no product in today's tables can break alone, and what rules have in common."""

from __future__ import annotations

import inspect
import typing

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import facts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import RULES as ALL
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.model import Candidate
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.rule import Context, Doubt
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.wheels import reach

TABLES = load()
RULES = {rule.name: rule for rule in ALL}
CONTEXT = Context(TABLES)


def driver(number, source="nvidia"):
    branch = TABLES.branch(int(number.split(".")[0]))
    return Candidate("driver", number, row={"branch": branch, "source": source, "kernel_modules": "open"})


def gpu(model, **columns):
    return Candidate("gpus", model, row={**TABLES.find("gpus", model=model), **columns})


def torch(release, tag):
    row = TABLES.find("torch", version=release)
    build = next(one for one in row["builds"] if one["tag"] == tag)
    return Candidate("pytorch", release, tag, {**build, "release": row})


@pytest.mark.parametrize(
    ("capability", "sass", "ptx", "how"),
    [
        ("8.6", ["8.0"], None, "sass"),
        ("8.0", ["8.6"], None, None),
        ("9.0", ["8.0"], None, None),
        ("9.0", ["8.0"], "8.0", "ptx"),
        ("8.0", ["7.0"], "9.0", None),
        ("12.1", ["12.0"], None, "sass"),
        ("8.6", None, None, "sass"),
    ],
)
def test_how_code_reaches_a_gpu(capability, sass, ptx, how):
    assert reach(capability, sass, ptx) == how


def test_a_gpu_reached_through_ptx_needs_the_toolkits_driver():
    check, future = RULES["pytorch-ptx-driver"].check, gpu("B200", compute_capability="13.0")
    assert "595.45.04" in check(CONTEXT, torch("2.14.1", "cu132"), driver("580.178.04"), future)
    assert check(CONTEXT, torch("2.14.1", "cu132"), driver("595.91.07"), future) is None
    assert check(CONTEXT, torch("2.14.1", "cpu"), driver("580.178.04"), future) is None


@pytest.mark.parametrize(
    ("cudnn", "model", "said"),
    [
        ("9.10.2.21", "Tesla V100 PCIe", None), ("9.11.0.98", "Tesla V100 PCIe", str), ("9.26.0.51", "Tesla T4", None),
        (None, "Tesla V100 PCIe", Doubt), (None, "Tesla T4", None),
    ],
)  # fmt: skip
def test_the_cudnn_inside_a_wheel_has_code_for_the_gpu(cudnn, model, said):
    wheel = torch("2.14.1", "cu126")
    wheel.row["cudnn"] = cudnn
    found = RULES["pytorch-cudnn-gpu"].check(CONTEXT, wheel, gpu(model))
    assert found is None if said is None else isinstance(found, said) and isinstance(found, Doubt) == (said is Doubt)


def test_aarch64_wheels_hold_less_code():
    check, arm = RULES["pytorch-gpu"].check, Context(TABLES, arch="aarch64")
    assert check(arm, torch("2.14.1", "cu126"), gpu("A40")) is None
    assert check(CONTEXT, torch("2.14.1", "cu126"), gpu("Tesla T4")) is None
    assert "holds no code" in check(arm, torch("2.14.1", "cu126"), gpu("Tesla T4"))


def test_tensorflow_and_glibc():
    check = RULES["tensorflow-glibc"].check
    row = TABLES.find("tensorflow", version="2.21")
    old, new = ({"glibc": number} for number in ("2.17", "2.31"))
    assert "glibc 2.27" in check(CONTEXT, Candidate("tensorflow", "2.21.0", row=row), Candidate("os", "old 1", row=old))
    assert check(CONTEXT, Candidate("tensorflow", "2.21.0", row=row), Candidate("os", "new 1", row=new)) is None


@pytest.mark.parametrize("name", ["horovod-cuda", "horovod-nccl"])
def test_horovod_needs_what_it_is_compiled_with(name):
    nothing = Candidate(name.split("-")[1], "none")
    assert RULES[name].check(CONTEXT, horovod("cuda"), nothing)
    assert RULES[name].check(CONTEXT, horovod("cpu"), nothing) is None


@pytest.mark.parametrize(
    ("release", "gcc", "reason"),
    [
        ("12.4", "13", None),
        ("12.4", "14", "nvcc of CUDA 12.4 takes g++ up to 13"),
        ("12.8", "14", None),
        ("11.8", "11", None),
    ],
)
def test_nvcc_has_to_take_the_compiler_that_horovod_is_compiled_with(release, gcc, reason):
    check, cuda = RULES["horovod-cuda-compiler"].check, TABLES.find("cuda", version=release)
    toolkit, compiler = Candidate("cuda", f"{release}.0", row=cuda), Candidate("compiler", gcc, "any 1")
    said = check(CONTEXT, toolkit, compiler)
    assert said is None if reason is None else reason in said
    assert check(Context(TABLES, accelerator="cpu"), toolkit, compiler) is None


def horovod(target):
    row = {**TABLES.find("horovod", version="0.28.1"), "target": target}
    return Candidate("horovod", "0.28.1", target, row)


@pytest.mark.parametrize(
    ("target", "build", "reason"),
    [
        ("cuda", "cpu", "does not have"), ("cuda", "cu118", None),
        ("cpu", "cu118", "would copy every tensor"), ("cpu", "cpu", None),
    ],
)  # fmt: skip
def test_horovod_is_compiled_for_what_pytorch_computes_on(target, build, reason):
    said = RULES["horovod-pytorch-build"].check(CONTEXT, horovod(target), torch("2.0.1", build))
    assert said is None if reason is None else reason in said


FORMS = {component.name: component.form for component in COMPONENTS} | {
    "gpus": facts.GpuModel, "os": facts.System, "arch": facts.Machine, "ansible_core": facts.AnsibleCore,
    "kernels": facts.Kernel, "compiler": facts.Compiler, "mig": facts.Mig,
}  # fmt: skip


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_rule_takes_what_its_scope_names(rule):
    """mypy cannot see that: a rule is called with what its scope names."""
    types = typing.get_type_hints(rule.check)
    taken = [types[name] for name in inspect.signature(rule.check).parameters]
    assert taken == [Context, *(FORMS[kind] for kind in rule.scope)]


def test_rules_have_distinct_names_sources_and_known_scopes():
    assert len(RULES) == len(ALL)
    assert all(rule.sources for rule in ALL)
    assert {kind for rule in ALL for kind in rule.scope} <= set(FORMS)
    assert all(len(rule.choices) <= 2 for rule in ALL)
