# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The four reference systems: as their texts write them, and as the profiles make them work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

sys.path.insert(0, str(Path(__file__).parent))

from checker import check  # noqa: E402 (a neighbour, found through the line above)

SYSTEMS = {
    "a40-ubuntu2004": {"os": "ubuntu 20.04", "gpus": ["NVIDIA A40"] * 4},
    "a100-ubuntu2204": {"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 4},
    "a100-el8": {"os": "rocky 8.10", "gpus": ["NVIDIA A100-SXM4-40GB"] * 4, "ansible_core": "2.16"},
    "multi-gpu-workstation": {"os": "ubuntu 20.04", "gpus": ["NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3080"]},
}
S0_AS_WRITTEN = {
    **SYSTEMS["a40-ubuntu2004"],
    "python": "3.10",
    "request": {
        "driver": "535",
        "cuda": "12.0",
        "cudnn": "latest",
        "tensorflow": "2.12.0",
        "pytorch": "latest",
        "pytorch_index": "cu120",
        "horovod": "0.28.1",
        "cupy": "latest",
    },
}


def profile(name, **more):
    return resolve({**SYSTEMS[name], "profile": name, **more})


PLAIN = {"pytorch_index": "pypi"}


@pytest.mark.parametrize(
    ("name", "more", "frameworks", "libraries", "python"),
    [
        ("a40-ubuntu2004", {"horovod": "none"}, {"pytorch": "2.0.1", "tensorflow": "2.12.0", "cupy": "13.6.0"}, ("11.7", "8.5.0.96", "2.14.3"), "3.10"),
        ("a100-ubuntu2204", {}, {"pytorch": "2.4.1"}, ("12.1", "9.1.0.70", "2.20.5"), "3.10"),
        ("a100-el8", {}, {"pytorch": "2.4.1"}, ("12.1", "9.1.0.70", "2.20.5"), "3.8"),
        ("multi-gpu-workstation", {}, {"pytorch": "2.0.1"}, ("11.7", "8.5.0.96", "2.14.3"), "3.8"),
    ],
)  # fmt: skip
def test_every_reference_system_resolves_from_the_general_package_index(name, more, frameworks, libraries, python):
    """The request is laid over the profile: where that names an index of PyTorch's own, it is given up."""
    stack = profile(name, request={**PLAIN, **more})["stack"]
    (environment,) = stack["environments"]
    assert (environment["index"], environment["frameworks"], environment["python"]) == (None, frameworks, python)
    assert environment["libraries"] == dict(zip(("cuda", "cudnn", "nccl"), libraries, strict=True))
    assert check(stack) == []


def test_s0_with_horovod_has_no_build_on_the_general_package_index():
    """Horovod is compiled for one CUDA: there PyTorch 2.0.1 is for 11.7, and TensorFlow 2.12 is for 11.8 everywhere."""
    found = profile("a40-ubuntu2004", request=PLAIN)
    assert found["stack"] is None
    assert found["suggestion"]["changes"] == {"pytorch_index": "cu118"}


def test_what_the_distribution_lacks_is_told_once_whatever_lives_in_the_environment():
    found = profile("a40-ubuntu2004", interpreter="distribution")
    assert [one["between"] for one in found["conflicts"]] == [["os", "python", "python_env_python"]]
    assert found["suggestion"]["changes"] == {"python_env_python": "standalone"}


def test_interpreters_of_the_reference_systems():
    sources = {name: profile(name)["stack"]["environments"][0]["interpreter"] for name in SYSTEMS}
    assert {name: (one["source"], one["path"]) for name, one in sources.items()} == {
        "a40-ubuntu2004": ("standalone", None),
        "a100-ubuntu2204": ("distribution", "/usr/bin/python3.10"),
        "a100-el8": ("distribution", "/usr/bin/python3.8"),
        "multi-gpu-workstation": ("distribution", "/usr/bin/python3.9"),
    }


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_profile_of_a_reference_system_resolves(name):
    assert check(profile(name)["stack"]) == []


def test_s0_as_written_is_refused_with_its_reasons():
    answer = resolve(S0_AS_WRITTEN)
    reasons = {tuple(one["between"]): one["reason"] for one in answer["conflicts"]}
    assert "never had an index cu120" in reasons["pytorch_index",]
    assert "built for CUDA 11.8 with cuDNN 8.6" in reasons["cuda", "tensorflow"]
    assert not any("driver" in one["between"] or "gpus" in one["between"] for one in answer["conflicts"])


def test_s0_gets_a_suggestion_that_works():
    suggestion = resolve(S0_AS_WRITTEN)["suggestion"]
    assert suggestion["changes"] == {"cuda": "11.8.0", "pytorch_index": "cu118"}
    stack = resolve({**SYSTEMS["a40-ubuntu2004"], "request": suggestion["request"]})["stack"]
    assert stack["driver"]["branch"] == "535"
    assert stack["cuda"]["version"] == "11.8.0"
    assert stack["environments"][0]["frameworks"] == {
        "cupy": "13.6.0",
        "horovod": "0.28.1",
        "pytorch": "2.0.1",
        "tensorflow": "2.12.0",
    }
    assert check(stack) == []


def test_s1_has_cuda_12_1_throughout():
    stack = profile("a100-ubuntu2204")["stack"]
    assert stack["cuda"]["version"] == "12.1.1"
    assert stack["environments"][0]["index"]["name"] == "cu121"
    assert stack["python"] == "3.10"


@pytest.mark.parametrize("os", ["rocky 8.10", "almalinux 8", "centos 8"])
def test_s2_resolves_on_el_8_and_its_rebuilds(os):
    answer = profile("a100-el8", os=os)
    assert answer["stack"]["python"] == "3.8"
    assert answer["stack"]["environments"][0]["frameworks"] == {"pytorch": "2.4.1"}
    assert any("Rocky Linux 8" in text for text in answer["warnings"]) == (os == "centos 8")


@pytest.mark.parametrize("gpus", [["RTX 3090", "RTX 3080"], ["Tesla V100-PCIE-32GB"] * 2, ["NVIDIA A100-PCIE-40GB"]])
def test_s3_resolves_with_warnings(gpus):
    answer = profile("multi-gpu-workstation", gpus=gpus)
    assert answer["stack"]["driver"]["version"] == "460.106.00"
    assert answer["stack"]["cuda"]["version"] == "11.2.2"
    assert any("end of life" in text for text in answer["warnings"])


@pytest.mark.parametrize("name", load().subjects["profiles"]["profiles"])
def test_every_profile_resolves_somewhere(name):
    systems = [*SYSTEMS.values(), {"os": "ubuntu 22.04", "gpus": ["A40"]}, {"os": "ubuntu 20.04", "gpus": ["K80"]}]
    assert any(resolve({**system, "profile": name})["stack"] for system in systems)
