# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports from the field, each with others of its kind, on the published tables."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

TABLES = load()


def ask(request, *gpus, os="ubuntu 22.04", tables=None, **facts):
    return resolve({"os": os, "gpus": list(gpus or ["A10"]), "request": request, **facts}, tables)


def planned(request, *gpus, **facts):
    answer = ask(request, *gpus, **facts)
    assert answer["stack"], [one["reason"] for one in answer["conflicts"]]
    return answer["stack"]


def refused(request, *gpus, **facts):
    answer = ask(request, *gpus, **facts)
    assert answer["stack"] is None
    return answer


def text_of(answer):
    return " ".join(f"{one['reason']} {one['suggestion']}" for one in answer["conflicts"])


def unseen(*builds):
    """Return the tables as they would be if nobody had seen what these builds pin: (release, tag)."""
    subjects = copy.deepcopy(dict(TABLES.subjects))
    for row in subjects["torch"]["rows"]:
        for build in row["builds"]:
            if (row["version"], build["tag"]) in builds:
                build |= {"cudnn": None, "nccl": None}
    return replace(TABLES, subjects=subjects)


# What is not known.


def test_a_build_whose_pins_are_known_is_judged_by_them():
    answer = refused({"jax": "0.6.0", "pytorch": "2.5.0", "python": "3.12"}, "L40S", environments="one")
    assert "pins cudnn 9.1.0.70, JAX 0.6.0 for CUDA 12 needs >=9.8" in text_of(answer)


OTHERS = [("2.6.0", "cu118"), ("2.6.0", "cu124"), ("2.6.0", "cu126")]


def test_a_build_whose_pins_nobody_saw_is_planned_with_a_warning_where_nothing_else_fits():
    stack = planned({"jax": "0.6.0", "pytorch": "2.6.0", "python": "3.12"}, "L40S", tables=unseen(*OTHERS))
    assert [
        one for one in stack["warnings"] if one.startswith("not verified: the cuDNN and NCCL of PyTorch 2.6.0+cu12")
    ]


@pytest.mark.parametrize(
    "request_",
    [
        {"jax": "0.6.0", "pytorch": ">=2.8,<2.9"},
        {"tensorflow": "2.20", "pytorch": ">=2.8,<2.9"},
        {"transformer_engine": "2.9", "wheels": "site", "pytorch": ">=2.8,<2.9"},
    ],
)
def test_a_build_whose_pins_nobody_saw_is_not_preferred_to_one_that_fits(request_):
    """The build that the release itself prefers is the unseen one."""
    stack = planned({**request_, "python": "3.12"}, "L40S", tables=unseen(("2.8.0", "cu128")))
    assert stack["environments"][0]["libraries"]["cuda"] in ("12.6", "12.9")
    assert not [one for one in stack["warnings"] if "2.8.0" in one]


def test_a_build_whose_pins_nobody_saw_is_no_way_out():
    """Among all that is proposed there is no build of the release that JAX's cuDNN is not known of."""
    tables = unseen(
        *(
            (row["version"], build["tag"])
            for row in TABLES.rows("torch")
            for build in row["builds"]
            if row["version"] == "2.8.0"
        )
    )
    answer = refused({"jax": "0.6.0", "pytorch": "2.5.0", "python": "3.12"}, "L40S", environments="one", tables=tables)
    changes = [changes for one in answer["conflicts"] for changes in one["alternatives"]]
    assert [one["pytorch"] for one in changes if "pytorch" in one] == ["2.9.1"]
    assert answer["suggestion"]["changes"] == {"jax": "0.5.3"}


def test_an_old_gpu_gets_no_cudnn_that_may_have_dropped_it():
    stack = planned({}, "Tesla V100-SXM2-32GB", tables=unseen(("2.14.1", "cu126"), ("2.14.0", "cu126")))
    assert stack["environments"][0]["frameworks"]["pytorch"] == "2.13.0"
    asked = planned({"pytorch": "2.14.1"}, "Tesla V100-SXM2-32GB", tables=unseen(("2.14.1", "cu126")))
    assert "not verified: the cuDNN of PyTorch 2.14.1+cu126" in " ".join(asked["warnings"])


# Local version labels.


@pytest.mark.parametrize("constraint", ["2.1.2+cu118", "==2.1.2+cu118", "2.1+cu118", "===2.1.2+cu118", "2.1.2+CU118"])
def test_a_label_names_the_build_of_pytorch(constraint):
    environment = planned({"pytorch": constraint})["environments"][0]
    assert (environment["frameworks"]["pytorch"], environment["index"]["name"]) == ("2.1.2", "cu118")


def test_a_label_names_the_build_for_processors_on_a_host_with_gpus():
    assert planned({"pytorch": "2.1.2+cpu"})["environments"][0]["index"]["name"] == "cpu"


@pytest.mark.parametrize("name, index", [("cu121", "cu121"), ("cu121", "pypi"), ("cu118", "cu118")])
def test_a_label_may_say_what_the_index_says(name, index):
    found = planned({"pytorch": f"2.1.2+{name}", "pytorch_index": index})["environments"][0]["index"]
    assert (found and found["name"]) == (None if index == "pypi" else index)


@pytest.mark.parametrize("index", ["cu121", "cpu", "pypi"])
def test_a_label_against_the_index_is_a_conflict(index):
    answer = refused({"pytorch": "2.1.2+cu118", "pytorch_index": index})
    assert [one["between"] for one in answer["conflicts"]] == [["pytorch", "pytorch_index"]]
    assert "names the build cu118" in text_of(answer)
    # Nobody has downloaded the builds for processors of that time, so that the next one that is known is proposed.
    assert f"set pytorch to {'2.13.0' if index == 'cpu' else '2.1.2'};" in text_of(answer)
    assert "set pytorch_index to cu118" in text_of(answer)


@pytest.mark.parametrize(
    "name, constraint, code, told",
    [
        ("pytorch", "2.1.2+cu117", "unknown_build", "cu121, cu118, cpu"),
        ("pytorch", "==2.1.2+rocm5.6", "unknown_build", "cu121, cu118, cpu"),
        ("pytorch", "99.1+cu118", "unknown_version", None),
        ("nccl", "2.21.5+cuda11.0", "unknown_build", "cuda12.5, cuda12.4"),
        *(
            (name, f"{version}+cu118", "no_builds", None)
            for name, version in [
                ("tensorflow", "2.15.1"), ("jax", "0.6.0"), ("vllm", "==0.9.0"), ("cupy", "13.6.0"), ("horovod", "0.28.1"),
                ("flash_attn", "2.8.3"), ("transformer_engine", "2.9.0"), ("triton", "3.6.0"), ("lightning", "2.6.0"),
                ("deepspeed", "0.19.0"), ("nvshmem", "3.4.5"), ("driver", "535.309.01"), ("cuda", "12.4.1"), ("python", "3.10"),
                ("dcgm", "4.4.1"), ("container_toolkit", "1.18.0"),
            ]
        ),
    ],
)  # fmt: skip
def test_a_label_that_is_no_build_is_refused(name, constraint, code, told):
    with pytest.raises(InputError) as caught:
        ask({name: constraint, "wheels": "site"})
    problem = caught.value.problems[0]
    assert (problem.code, problem.subject, problem.detail["value"]) == (code, name, constraint)
    assert told is None or problem.detail["builds"] == told


def test_a_label_names_the_build_of_nccl():
    found = [planned({"cuda": "12.8", "nccl": f"2.21.5+cuda{build}"})["nccl"]["cuda"] for build in ("12.4", "12.5")]
    assert found == ["12.4", "12.5"]


# Constraints that were taken and then ignored.


@pytest.mark.parametrize("constraint", ["3.10.15", "3.10.1", "<3.10.20,>=3.10"])
@pytest.mark.parametrize("interpreter", [None, "standalone", "conda", "/usr/bin/python3.10"])
def test_a_patch_release_of_python_is_spoken_of(constraint, interpreter):
    stack = planned({"pytorch": "2.5.1", "python": constraint}, interpreter=interpreter)
    assert stack["python"] == "3.10"
    assert f"Python {constraint} was asked for; a plan chooses the minor version" in " ".join(stack["warnings"])


def test_a_minor_version_of_python_is_not():
    assert not [one for one in planned({"python": "3.10"})["warnings"] if "Python" in one]


def test_a_build_of_what_is_left_out_is_a_contradiction():
    with pytest.raises(InputError) as caught:
        ask({"pytorch": "none", "pytorch_index": "cu118", "jax": "latest"})
    assert [(one.code, one.subject) for one in caught.value.problems] == [("key_of_excluded", "pytorch_index")]


def test_what_a_profile_says_of_what_is_left_out_goes_with_it():
    stack = planned({"pytorch": "none", "jax": "latest"}, profile="pytorch-cu118-legacy")
    assert set(stack["environments"][0]["frameworks"]) == {"jax"}
