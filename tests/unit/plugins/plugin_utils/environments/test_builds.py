# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A build of Horovod is compiled once, by one host, and its wheel goes to those that have none."""

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.builds import (
    assign_builds,
    describe_builds,
    wheel_of,
)

PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
BUILD = {
    "version": "0.28.1",
    "requirement": "horovod==0.28.1",
    "source": {
        "file": "horovod-0.28.1.tar.gz",
        "sha256": "a" * 64,
        "standard": 14,
        "standard_files": ["CMakeLists.txt"],
    },
    "cxx_standard": 20,
    "environment": {"HOROVOD_WITH_PYTORCH": "1"},
    "packages": ["g++"],
    "tools": ["wheel==0.43.0 --hash=sha256:bb"],
    "frameworks": ["pytorch"],
}
MAIN = {"name": "main", "python": "3.11", "accelerator": "cpu", "requirements": ["torch==2.13.0"], "build": BUILD}
LOCK = f"torch==2.13.0+cpu --hash=sha256:{'a' * 64}\nnumpy==2.4.6 --hash=sha256:{'b' * 64}\n"
WHEEL = {"file": "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "sha256": "c" * 64}


def described(environment=None, lock=LOCK, state=None, platform=None):
    """The build of the one environment."""
    return describe_builds([environment or MAIN], platform or PLATFORM, {"main": lock}, state)["main"]


def digest(path=(), value=None, **other):
    """The digest of the build, with one value of the environment replaced."""
    environment = copy.deepcopy(MAIN)
    place = environment
    for key in path[:-1]:
        place = place[key]
    if path:
        place[path[-1]] = value
    return described(environment, **other)["digest"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("build", "source", "sha256"), "b" * 64),
        (("build", "cxx_standard"), 17),
        (("build", "environment"), {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_GPU": "CUDA"}),
        (("build", "tools"), ["wheel==0.44.0 --hash=sha256:cc"]),
        (("python",), "3.10"),
    ],
)
def test_what_the_wheel_depends_on_makes_another_build(path, value):
    assert digest(path, value) != digest()


@pytest.mark.parametrize(
    "other",
    [
        {"lock": LOCK.replace("2.13.0", "2.12.0")},
        {"platform": {**PLATFORM, "arch": "aarch64"}},
        {"platform": {**PLATFORM, "version": "13"}},
    ],
)
def test_another_framework_or_platform_makes_another_build(other):
    assert digest(**other) != digest()


@pytest.mark.parametrize(
    ("path", "value"), [(("build", "packages"), ["g++-12"]), (("requirements",), ["torch", "attrs"])]
)
def test_what_the_wheel_does_not_depend_on_makes_none(path, value):
    assert digest(path, value) == digest()
    assert digest(lock=LOCK.replace("2.4.6", "2.4.7")) == digest()


def test_an_environment_without_horovod_has_no_build():
    assert describe_builds([{**MAIN, "build": None}, {**MAIN, "build": {}}], PLATFORM, {}, {}) == {}


def state(horovod, packages=("torch", "horovod"), builds=None, changed=()):
    """Fact gpu_node_state, as far as it is read here."""
    found = {"python": "3.11.2", "packages": dict.fromkeys(packages, "1"), "horovod": horovod}
    found["changed_files"] = dict.fromkeys(changed, "lib/x.so")
    return {"environments": {"main": found}, "horovod_builds": builds or {}}


@pytest.mark.parametrize(
    ("found", "installed"),
    [
        (None, False),
        (state(None), False),
        (state("0" * 16), False),
        (state(digest()), True),
        (state(digest(), packages=["torch"]), False),
        (state(digest(), changed=["horovod"]), False),
        (state(digest(), changed=["torch"]), True),
    ],
)
def test_installed_is_what_came_from_this_build(found, installed):
    assert described(state=found)["installed"] is installed


def test_the_wheel_of_this_build_is_known():
    assert (
        described(state=state(None, builds={digest(): WHEEL, "0" * 16: {**WHEEL, "file": "other.whl"}}))["wheel"]
        == WHEEL
    )
    assert described(state=state(None, builds={"0" * 16: WHEEL}))["wheel"] is None


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (WHEEL, True),
        ({**WHEEL, "file": "../../../etc/shadow"}, False),
        ({**WHEEL, "file": "horovod-0.28.2-cp311-cp311-linux_x86_64.whl"}, False),
        ({**WHEEL, "sha256": "c" * 63}, False),
        ({**WHEEL, "sha256": "C" * 64}, False),
        ({**WHEEL, "sha256": "c" * 64 + " --index-url https://evil.example"}, False),
        ({**WHEEL, "sha256": ["c" * 64]}, False),
        ({"sha256": "c" * 64}, False),
        ({}, False),
        (None, False),
        ("horovod", False),
        ([WHEEL], False),
    ],
)
def test_what_a_node_says_of_its_wheel_is_of_the_plan_or_nothing(said, taken):
    assert wheel_of(said, "0.28.1") == (WHEEL if taken else None)


def one(digest, wheel=None, installed=False, name="main"):
    """A described build, as far as the assignment looks at it."""
    return {"name": name, "digest": digest, "build": BUILD, "wheel": wheel, "installed": installed}


@pytest.mark.parametrize(
    ("hosts", "plan"),
    [
        (
            {"a": {"main": one("d1")}, "b": {"main": one("d1")}, "c": {"main": one("d2")}},
            {"d1": ("a", None, ["b"]), "d2": ("c", None, [])},
        ),
        (
            {"new": {"main": one("d1")}, "old": {"main": one("d1", WHEEL, True)}},
            {"d1": ("old", WHEEL, ["new"])},
        ),
        (
            {
                "a": {"main": one("d1", WHEEL, True)},
                "b": {"main": one("d1", WHEEL)},
                "c": {"main": one("d1", None, True)},
            },
            {"d1": ("a", WHEEL, [])},
        ),
        (
            {
                "a": {"main": one("d1"), "more": one("d1", name="more")},
                "b": {"main": one("d1"), "more": one("d1", name="more")},
            },
            {"d1": ("a", None, ["b"])},
        ),
        ({"a": {}}, {}),
    ],
    ids=["first", "a new host", "nobody lacks it", "two environments", "nothing"],
)
def test_one_host_answers_for_a_build(hosts, plan):
    found = assign_builds(hosts)
    assert {key: (value["host"], value["wheel"], value["receivers"]) for key, value in found.items()} == plan
    assert {value["environment"] for value in found.values()} <= {"main"}
