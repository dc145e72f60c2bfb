# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports from the field, each with others of its kind, on the published tables."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.request_keys import KEYS
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
        ("nccl", "2.21.5+cuda11.0", "unknown_build", "cuda12.5, cuda12.4, cuda11"),
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


@pytest.mark.parametrize("name", sorted(one.name for one in COMPONENTS if one.published and one.keys))
def test_a_version_that_nobody_published_is_told_with_others(name):
    with pytest.raises(InputError) as caught:
        ask({name: "0.0.99", "wheels": "site"})
    problem = caught.value.problems[0]
    assert (problem.code, problem.subject) == ("unknown_version", name)
    assert problem.detail["nearest"]


def test_a_label_names_the_build_of_nccl():
    found = [planned({"cuda": "12.8", "nccl": f"2.21.5+cuda{build}"})["nccl"]["cuda"] for build in ("12.4", "12.5")]
    assert found == ["12.4", "12.5"]


# Constraints that were taken and then ignored.


@pytest.mark.parametrize(
    "constraint", ["3.10.15", "3.10.1", "<3.10.20,>=3.10", "==3.10.15", "~=3.10.2", "==3.10.15,>=3.8"]
)
@pytest.mark.parametrize("interpreter", [None, "standalone", "conda", "/usr/bin/python3.10"])
def test_a_patch_release_of_python_is_spoken_of(constraint, interpreter):
    stack = planned({"pytorch": "2.5.1", "python": constraint}, interpreter=interpreter)
    assert stack["python"] == "3.10"
    assert f"Python {constraint} was asked for; a plan chooses the minor version" in " ".join(stack["warnings"])


@pytest.mark.parametrize("constraint", ["550.54.15-1", "580.95.05rc1", "535.183.01.2", "550.54.15.post1"])
def test_a_package_version_is_no_release_of_a_driver(constraint):
    with pytest.raises(InputError) as caught:
        ask({"driver": constraint})
    problem = caught.value.problems[0]
    assert (problem.code, problem.subject) == ("unknown_version", "driver")
    assert problem.detail["nearest"].startswith(constraint[:3])


@pytest.mark.parametrize("constraint", ["535.183.01", "580.95", "570.999.99"])
def test_a_release_of_a_known_branch_is_one(constraint):
    assert planned({"driver": constraint})["driver"]["branch"] == constraint[:3]


def test_a_minor_version_of_python_is_not():
    assert not [one for one in planned({"python": "3.10"})["warnings"] if "Python" in one]


def test_a_build_of_what_is_left_out_is_a_contradiction():
    with pytest.raises(InputError) as caught:
        ask({"pytorch": "none", "pytorch_index": "cu118", "jax": "latest"})
    assert [(one.code, one.subject) for one in caught.value.problems] == [("key_of_excluded", "pytorch_index")]


def test_what_a_profile_says_of_what_is_left_out_goes_with_it():
    stack = planned({"pytorch": "none", "jax": "latest"}, profile="pytorch-cu118-legacy")
    assert set(stack["environments"][0]["frameworks"]) == {"jax"}


# The CUDA that is there.


def requirements(stack, name):
    return [
        line
        for one in stack["environments"]
        if name in one["frameworks"]
        for line in one["requirements"]
        if name.split("_")[0] in line
    ]


@pytest.mark.parametrize(
    "request_, name, line",
    [
        ({"cuda": "12.4", "cupy": "13.6.0"}, "cupy", "cupy-cuda12x==13.6.0"),
        ({"cuda": "12.8", "cupy": "latest"}, "cupy", "cupy-cuda12x==14.2.0"),
        ({"cuda": "11.8", "cupy": "13.6.0"}, "cupy", "cupy-cuda11x==13.6.0"),
        ({"cuda": "13.0", "cupy": "latest"}, "cupy", "cupy-cuda13x==14.2.0"),
        ({"cuda": "12.4", "jax": "0.9.1"}, "jax", "jax[cuda12]==0.9.1"),
        ({"cuda": "13.0", "jax": "0.9.1"}, "jax", "jax[cuda13]==0.9.1"),
        ({"cuda": "12.4", "cupy": "13.6.0", "pytorch": "2.11.0"}, "cupy", "cupy-cuda12x==13.6.0"),
    ],
)
def test_the_wheel_is_for_the_cuda_that_the_host_has(request_, name, line):
    stack = planned({"pytorch": "none", **request_}, "L4")
    assert requirements(stack, name) == [line]
    assert not [one for one in stack["warnings"] if "not verified" in one]


@pytest.mark.parametrize(
    ("cuda", "cupy", "fits"),
    [
        ("11.0", "13.6.0", False),
        ("11.1", "12.3.0", False),
        ("11.2", "13.6.0", True),
        ("11.8", "11.6.0", True),
        ("12.0", "12.3.0", True),
    ],
)
def test_a_wheel_for_a_major_may_begin_later_than_that(cuda, cupy, fits):
    """NVRTC of CUDA 11.0 and 11.1 has another name."""
    answer = ask(
        {"cuda": cuda, "cupy": cupy, "pytorch": "none"},
        "A100 SXM4 40GB",
        os="ubuntu 20.04" if cuda < "12" else "ubuntu 22.04",
    )
    assert bool(answer["stack"]) is fits
    assert fits or answer["suggestion"]["changes"]["cuda"] == "11.2.2"


def test_vllm_is_one_for_the_cuda_that_the_host_has():
    found = planned({"cuda": "12.4", "vllm": "latest"}, "L4")["environments"][0]
    assert found["libraries"]["cuda"].startswith("12.")


@pytest.mark.parametrize(
    "request_", [{"vllm": "0.20.0"}, {"jax": "0.6.0", "cuda": "13.0"}, {"cupy": "14.2.0", "pytorch": "2.15.0"}]
)
def test_a_wheel_for_another_cuda_than_the_host_has_is_not_taken_for_granted(request_):
    assert [one for one in planned({"cuda": "12.4", **request_}, "L4")["warnings"] if "not verified: whether" in one]


def test_a_cupy_that_brings_no_cuda_is_not_planned_beside_a_toolkit_of_another():
    answer = refused({"cuda": "12.4", "cupy": "13.6.0", "pytorch": "2.15.0"}, "L4")
    assert "the toolkit of CUDA 12.4" in text_of(answer) or "built for CUDA 12" in text_of(answer)


@pytest.mark.parametrize(
    "request_, line",
    [
        ({"cupy": "latest"}, "cupy-cuda13x[ctk]==14.2.0"),
        ({"cupy": "latest", "driver": "550"}, "cupy-cuda12x[ctk]==14.2.0"),
        ({"cupy": "latest", "pytorch": "latest"}, "cupy-cuda13x==14.2.0"),
        ({"cupy": "latest", "tensorflow": "2.20"}, "cupy-cuda12x==14.2.0"),
        ({"cupy": "latest", "jax": "latest"}, "cupy-cuda13x[ctk]==14.2.0"),  # whose wheels lack cuRAND
    ],
)
def test_cupy_brings_nvrtc_and_the_runtime_where_nothing_else_does(request_, line):
    assert requirements(planned(request_, "L4"), "cupy") == [line]


@pytest.mark.parametrize("release", ["latest", "13.6.0"])
@pytest.mark.parametrize("gpu", ["Tesla M40", "Tesla P100-PCIE-16GB", "GTX 1080 Ti", "V100 PCIe"])
def test_the_wheel_is_for_a_cuda_that_still_compiles_for_the_gpu(release, gpu):
    """NVRTC of CUDA 13 begins at compute capability 7.5; what CuPy 14 itself supports begins at 5.0."""
    line = requirements(planned({"pytorch": "none", "cupy": release}, gpu), "cupy")[0]
    assert line.startswith("cupy-cuda12x")


def test_a_cupy_whose_only_cuda_dropped_the_gpu_is_refused():
    answer = refused({"pytorch": "none", "cupy": "13.6.0", "cuda": "13.0"}, "V100 PCIe")
    assert "dropped Tesla V100 PCIe" in text_of(answer)
    assert requirements(planned({"pytorch": "none", "cupy": "latest"}, "T4"), "cupy") == ["cupy-cuda13x[ctk]==14.2.0"]


def test_a_cupy_that_the_gpu_is_too_old_for_is_no_way_out():
    warnings = " ".join(planned({"pytorch": "none", "cupy": "latest"}, "Tesla K80", os="ubuntu 20.04")["warnings"])
    assert "ask for cuda 11 as well" in warnings
    assert "14.0.0" not in warnings


def test_a_cupy_that_cannot_bring_them_says_so():
    lacking = "needs NVRTC and the CUDA runtime"
    assert lacking in " ".join(planned({"cupy": "13.6.0"}, "L4")["warnings"])
    for beside in ({"cuda": "13.0"}, {"pytorch": "2.11.0"}, {"tensorflow": "2.12.0", "python": "3.10"}):
        assert lacking not in " ".join(planned({"cupy": "13.6.0", **beside}, "L4")["warnings"])


# NumPy 2, for which wheels have to be compiled, and which the metadata of older ones does not keep out.


@pytest.mark.parametrize(
    ("request_", "os", "line"),
    [
        ({"pytorch": "2.2.2"}, "ubuntu 22.04", "numpy<2"),
        ({"pytorch": "2.1.2+cu118"}, "ubuntu 22.04", "numpy<2"),
        ({"pytorch": "1.13.1"}, "ubuntu 22.04", "numpy<2"),
        ({"pytorch": "2.1.2", "deepspeed": "0.14.0", "wheels": "site"}, "ubuntu 22.04", "numpy<2"),
        ({"pytorch": "2.2.2", "cupy": "13.6.0"}, "ubuntu 22.04", "numpy<2"),
        ({"tensorflow": "2.10.1"}, "ubuntu 20.04", "numpy<2"),
        ({"tensorflow": "2.11.1"}, "ubuntu 20.04", "numpy<2"),
        ({"pytorch": "2.3.1"}, "ubuntu 22.04", "numpy"),
        ({"pytorch": "latest"}, "ubuntu 22.04", "numpy"),
        ({"tensorflow": "2.12.0"}, "ubuntu 22.04", "numpy"),  # which says so itself
    ],
)
def test_wheels_that_were_compiled_for_numpy_1_get_it(request_, os, line):
    environment = planned({"python": "3.10", **request_}, "V100 PCIe", os=os)["environments"][0]
    assert [one for one in environment["requirements"] if one.startswith("numpy")] == [line]
    assert [one for one in environment["conda"]["specs"] if one.startswith("numpy")] == [line]
    assert not [one for one in environment["conda"]["wheels"] if one.startswith("numpy")]


@pytest.mark.parametrize(
    ("request_", "gpus"),
    [({"cupy": "14.2.0", "pytorch": "2.2.2"}, ["A10"]), ({"jax": "0.9.1", "pytorch": "2.2.2", "python": "3.11"}, [])],
)
def test_what_needs_numpy_2_is_not_planned_beside_what_does_not_take_it(request_, gpus):
    answer = resolve({"os": "ubuntu 22.04", "gpus": gpus, "request": {**request_, "environments": "one"}})
    assert answer["stack"] is None
    assert "is compiled for NumPy 1" in text_of(answer)


# Advice.

ENDED = {str(row["branch"]) for row in TABLES.rows("drivers") if row["status"] == "eol"}


@pytest.mark.parametrize(
    "request_, gpu, os, advised",
    [
        ({"driver": "470", "pytorch": "2.13.0"}, "A10", "ubuntu 22.04", "580"),
        ({"driver": "470", "cuda": "12.4"}, "RTX 3090", "ubuntu 22.04", "580"),
        ({"driver": "535"}, "B200", "ubuntu 24.04", "580"),
        ({"driver": "515", "jax": "0.9.1"}, "A10", "rocky 9", "580"),
        ({"driver": "550", "vllm": "latest"}, "H200 SXM 141GB", "ubuntu 22.04", None),
        ({"driver": "535"}, "K80", "ubuntu 20.04", "470"),  # nothing that lives runs it
    ],
)
def test_no_branch_past_its_end_is_advised_while_a_living_one_works(request_, gpu, os, advised):
    answer = ask(request_, gpu, os=os)
    changes = [changes for one in answer["conflicts"] for changes in one["alternatives"]]
    named = {one["driver"] for one in changes if one.get("driver")}
    assert named == ({advised} if advised else set())
    assert not named & ENDED or gpu == "K80"


@pytest.mark.parametrize(
    "request_",
    [
        {"pytorch": "2.1.2+cu118", "pytorch_index": "cu121"}, {"cuda": "12.0", "tensorflow": "2.12.0"}, {"jax": "0.6.0", "pytorch": "2.5.0"},
        {"driver": "470", "cupy": "14.2.0"}, {"cuda": "13.0", "cudnn": "8.9"}, {"nccl": "2.19.3", "cuda": "13.0"},
    ],
)  # fmt: skip
def test_advice_is_about_what_was_asked_and_nothing_else(request_):
    answer = refused(request_)
    named = {name for one in answer["conflicts"] for changes in one["alternatives"] for name in changes}
    assert named <= {*request_, "environments"}
    assert set(answer["suggestion"]["changes"]) <= {*request_, "environments"}


# Libraries, by the major of their CUDA.


@pytest.mark.parametrize(
    "name, version, cuda, build",
    [
        ("cudnn", "9.10.2", "11.8", "11"), ("cudnn", "9.13", "12.8", "12"), ("cudnn", "9.10.2", "12.4", "12"), ("cudnn", "9.11", "12.8", "12"),
        ("cudnn", "8.9.7", "12.2", "12.2"), ("cudnn", "8.9.7", "11.8", "11.8"), ("cudnn", "8.7", "11.8", "11.8"), ("cudnn", "8.9.2", "12.1", "12.1"),
        ("cudnn", "9.28", "13.0", "13"), ("cudnn", "9.20.0", "12.9", "12"), ("nccl", "2.29.7", "12.9", "12"), ("nccl", "2.29.7", "13.0", "13"),
        ("nccl", "2.28.9", "13.0", "13.0"), ("nccl", "2.21.5", "11.8", "11"), ("nccl", "2.21.5", "12.4", "12.4"),
    ],
)  # fmt: skip
def test_a_library_is_there_for_each_cuda_that_it_is_released_for(name, version, cuda, build):
    part = planned({name: version, "cuda": cuda})[name]
    assert part["cuda"] == build
    assert all(build in package["version"] or build in package["name"] for package in part["packages"])


@pytest.mark.parametrize(
    "name, version, cuda", [("cudnn", "9.11", "11.8"), ("cudnn", "9.10.2", "13.0"), ("nccl", "2.29.7", "11.8")]
)
def test_a_library_is_not_there_for_a_cuda_that_it_is_not_released_for(name, version, cuda):
    answer = refused({name: version, "cuda": cuda})
    assert [one["between"] for one in answer["conflicts"]] == [sorted([name, "cuda"])]


def test_a_build_that_no_repository_was_seen_to_have_is_neither_proposed_nor_preferred():
    stack = planned({"cuda": "12.8", "cudnn": "latest", "nccl": "latest"})
    assert (stack["cudnn"]["version"], stack["nccl"]["version"]) == ("9.10.2.21", "2.25.1")
    assert [
        one
        for one in planned({"cudnn": "9.13", "cuda": "12.8"})["warnings"]
        if "was not seen in the repository ubuntu2204" in one
    ]


@pytest.mark.parametrize(
    "request_, gpu, refused_",
    [
        ({"pytorch": "2.7.1", "pytorch_index": "cu118"}, "Tesla K80", True),
        ({"pytorch": "2.4.1", "pytorch_index": "cu118"}, "Tesla K80", True),
        ({"pytorch": "2.3.1", "pytorch_index": "cu118"}, "Tesla K80", False),
        ({"pytorch": "2.7.1", "pytorch_index": "cu118"}, "Tesla M40", False),
        ({"pytorch": "none", "cupy": "13.6.0", "cuda": "11.8", "cudnn": "9.5"}, "Tesla K80", True),
        ({"pytorch": "none", "cupy": "13.6.0", "cuda": "11.8", "cudnn": "9.5"}, "Tesla M40", False),
        ({"pytorch": "none", "cupy": "13.6.0", "cuda": "11.7", "cudnn": "8.5"}, "Tesla K80", False),
        ({"pytorch": "none", "cupy": "13.6.0", "cuda": "11.8", "cudnn": "8.7"}, "Tesla K80", False),
        ({"pytorch": "none", "cupy": "13.6.0", "cuda": "11.8", "cudnn": "8.9"}, "Tesla K80", True),
    ],
)
def test_cudnn_has_code_for_the_gpu_whatever_its_cuda(request_, gpu, refused_):
    answer = ask(request_, gpu, os="ubuntu 20.04")
    assert (answer["stack"] is None) == refused_
    assert not refused_ or "cuDNN" in text_of(answer)


@pytest.mark.parametrize(
    ("gpu", "os", "major"),
    [
        ("V100 PCIe", "ubuntu 22.04", "12"),
        ("V100 PCIe", "rocky 9", "12"),
        ("GTX 1080 Ti", "ubuntu 24.04", "12"),
        ("Tesla M40", "ubuntu 22.04", "12"),
        ("Tesla K80", "ubuntu 20.04", "11"),
        ("T4", "ubuntu 22.04", "13"),
    ],
)
def test_nccl_is_built_with_a_cuda_that_compiles_for_the_gpu(gpu, os, major):
    assert planned({"nccl": "latest"}, gpu, os=os)["nccl"]["cuda"].split(".")[0] == major


def test_a_build_of_nccl_without_code_for_the_gpu_is_refused():
    answer = refused({"nccl": "2.27.7+cuda13.0"}, "V100 PCIe")
    assert "NCCL 2.27.7 (built for CUDA 13.0) has no code for Tesla V100 PCIe" in text_of(answer)


# Releases of 2026-11.


@pytest.mark.parametrize(
    "cuda, planned_",
    [("13.4", "13.4.2"), ("13.4.1", "13.4.1"), ("13.5", "13.5.0"), ("12.9", "12.9.2"), ("13.0", "13.0.3")],
)
def test_toolkits_are_planned_at_their_newest_final_release(cuda, planned_):
    part = planned({"cuda": cuda})["cuda"]
    assert part["version"] == planned_
    assert part["packages"][0]["version"] == f"{planned_}-1"
    assert len(part["packages"]) == 4  # with those that keep others from moving on


def test_a_preview_is_no_toolkit():
    with pytest.raises(InputError) as caught:
        ask({"cuda": "13.4.0"})
    assert "13.4.2" in caught.value.problems[0].detail["nearest"]


@pytest.mark.parametrize(
    "gpu, release, tag",
    [
        ("GH200", "2.8.0", "cu129"),
        ("GB200", "2.8.0", "cu129"),
        ("GB200", "2.15.0", "cu132"),
        ("GB300", "2.14.1", "cu132"),
    ],
)
def test_builds_for_aarch64(gpu, release, tag):
    stack = planned({"pytorch": release, "pytorch_index": tag}, gpu, os="ubuntu 24.04", arch="aarch64")
    assert stack["environments"][0]["index"]["name"] == tag


@pytest.mark.parametrize(
    "os, cuda, certain",
    [
        ("rocky 9", "11.8", True),
        ("debian 13", "13.1", True),
        ("ubuntu 26.04", "13.4", True),
        ("ubuntu 26.04", "13.0", False),
    ],
)
def test_the_first_toolkit_of_a_distribution(os, cuda, certain):
    doubt = f"whether CUDA {cuda} is published for {os}"
    assert any(doubt in one for one in planned({"cuda": cuda}, os=os)["warnings"]) is not certain


def test_a_toolkit_before_the_first_of_a_distribution():
    assert "never published for debian 13" in text_of(refused({"cuda": "12.4"}, os="debian 13"))


@pytest.mark.parametrize("os", ["rocky 8", "almalinux 8", "centos 8"])
def test_the_first_toolkit_of_el_8_is_older_than_what_the_tables_have(os):
    assert planned({"cuda": "11.0"}, "A100 SXM4 40GB", os=os)["cuda"]["version"] == "11.0.3"


@pytest.mark.parametrize(
    ("os", "gpu", "request_", "branch", "certain"),
    [
        ("ubuntu 26.04", "A10", {}, "595", True),
        ("ubuntu 26.04", "A10", {"driver": "610"}, "610", True),
        ("ubuntu 26.04", "A10", {"driver": "535"}, "535", False),
        ("ubuntu 26.04", "V100 PCIe", {}, "580", False),  # whose last branch it is
        ("ubuntu 24.04", "V100 PCIe", {}, "580", True),
        ("debian 13", "A10", {"driver": "590", "driver_source": "nvidia"}, "590", True),
    ],
)
def test_the_first_driver_of_a_distribution(os, gpu, request_, branch, certain):
    stack = planned(request_, gpu, os=os)
    assert stack["driver"]["branch"] == branch
    doubted = [
        one for one in stack["warnings"] if one.startswith(f"not verified: whether NVIDIA's repository for {os} has")
    ]
    assert bool(doubted) is not certain


def test_a_driver_before_the_first_of_a_distribution():
    assert "begins with driver branch 590" in text_of(
        refused({"driver": "580", "driver_source": "nvidia"}, os="debian 13")
    )


@pytest.mark.parametrize("release", ["0.14.0", "0.15.4", "0.16.9", "0.17.6"])
def test_deepspeed_of_before(release):
    stack = planned({"deepspeed": release, "wheels": "site", "pytorch": "2.5.1", "python": "3.10"})
    assert f"deepspeed=={release}" in stack["environments"][0]["requirements"]


# Text that is empty, or no number for a program.


@pytest.mark.parametrize("empty", ["", " ", "\n"])
@pytest.mark.parametrize("key", [name for name, key in KEYS.items() if key.free and name != "environment_name"])
def test_an_empty_text_asks_for_nothing(key, empty):
    assert planned({"cuda": "12.4", key: empty}) == planned({"cuda": "12.4"})


@pytest.mark.parametrize("gcc", ["12.", "1..2", "\N{ARABIC-INDIC DIGIT ONE}", "\N{SUPERSCRIPT TWO}", "9" * 5000])
def test_a_compiler_is_a_version_of_one(gcc):
    with pytest.raises(InputError) as refusal:
        ask({"cuda": "12.4", "gcc": gcc})
    assert refusal.value.problems[0].code == "wrong_compiler"


@pytest.mark.parametrize("name", [name for name, key in KEYS.items() if not key.free and not key.choices])
@pytest.mark.parametrize("value", ["9" * 5000, ">=" + "9" * 5000, "1." * 3000 + "1"])
def test_a_version_is_no_longer_than_one_is(name, value):
    with pytest.raises(InputError) as refusal:
        ask({name: value})
    assert refusal.value.problems[0].code == "wrong_version"


# GPUs that share a board with Arm processors.


@pytest.mark.parametrize("gpu", ["GH200", "GB200", "GB300", "NVIDIA GB10"])
def test_the_processors_of_a_board_are_those_of_the_host(gpu):
    """A lab's host has the processors of the machine it runs on: what was measured, or is said, counts."""
    for gpus in ([gpu], ["A10", gpu], [gpu, "A10"]):
        assert planned({}, *gpus, os="ubuntu 24.04")["os"]["arch"] == "aarch64"
        assert planned({}, *gpus, os="ubuntu 24.04", arch="x86_64")["os"]["arch"] == "x86_64"


def test_other_gpus_say_nothing_of_the_processors():
    assert [planned({}, "H100 PCIe", **given)["os"]["arch"] for given in ({}, {"arch": "aarch64"})] == [
        "x86_64",
        "aarch64",
    ]
