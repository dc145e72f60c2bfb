# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request is solved once, by one host, and installed only where it is not."""

import base64

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.environments import normalise
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift import requests
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.locks import (
    assign,
    describe_environments,
    locked_packages,
)
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}


def request_digest(environment, platform, index):
    """The digest of an environment with another index."""
    return requests.request_digest(parse(Environment, {**environment, "index": index}), parse(System, platform))


MAIN = {
    "name": "main",
    "python": "3.11",
    "accelerator": "cpu",
    "requirements": ["torch==2.13.0", "typing-extensions"],
    "index": {"name": "cpu", "url": "https://wheels.example/cpu"},
}
A, B, C = ("sha256:" + digit * 64 for digit in "abc")
BODY = f"""torch==2.13.0+cpu \\
    --hash={A}
typing-extensions==4.16.0 \\
    --hash={B} \\
    --hash={C}
"""
INSTALLED = {"main": {"python": "3.11.2", "packages": {"torch": "2.13.0+cpu", "typing_extensions": "4.16.0"}}}
DIGEST = request_digest(MAIN, PLATFORM, MAIN["index"])
LOCK = f"# Solved on gpu-1 for: torch\n# request: {DIGEST}\n{BODY}"


def slurped(text, name="main"):
    """A result of allreduce.gpu.read_file in a loop; None for a file that is not there."""
    item = {"item": {"name": name}}
    return {**item, "msg": "file not found"} if text is None else {**item, "content": base64.b64encode(text.encode())}


def described(text=LOCK, installed=INSTALLED, environment=MAIN, **more):  # pylint: disable=dangerous-default-value
    """The only environment of a host."""
    return describe_environments([environment], PLATFORM, [slurped(text)], installed, **more)["main"]


def test_an_environment_that_is_made_anew_is_not_installed():
    """Role python_env has replaced it since its packages were measured."""
    environment = {**MAIN, "interpreter": {"source": "standalone", "path": None, "packages": []}}
    for home, installed in (("/opt/allreduce/python/cpython-3.11-linux-x86_64-gnu/bin", True), ("/usr/bin", False)):
        found = {"main": {**INSTALLED["main"], "home": home}}
        assert described(installed=found, environment=environment)["installed"] is installed


def test_packages_of_a_lock_are_canonical_names_with_versions():
    text = BODY + f"My_Pkg[extra]==1 ; python_version > '3' --hash={A}\n# a==1\n\n    # via torch\n"
    assert locked_packages(text) == {"torch": "2.13.0+cpu", "typing-extensions": "4.16.0", "my-pkg": "1"}


@pytest.mark.parametrize(
    "change",
    [{"requirements": ["torch==2.12.0"]}, {"python": "3.12"}, {"accelerator": "cuda"}],
)
def test_digest_changes_with_what_is_asked(change):
    assert request_digest({**MAIN, **change}, PLATFORM, MAIN["index"]) != DIGEST


def test_digest_changes_with_platform_and_index():
    assert request_digest(MAIN, {**PLATFORM, "arch": "aarch64"}, MAIN["index"]) != DIGEST
    assert request_digest(MAIN, PLATFORM, {"name": "cu126"}) != DIGEST


def test_digest_does_not_depend_on_order_or_on_where_wheels_come_from():
    other = {**MAIN, "requirements": MAIN["requirements"][::-1]}
    assert request_digest(other, PLATFORM, {"name": "cpu", "url": "https://mirror.example"}) == DIGEST
    assert described(no_index=True)["lock"] == described(index_url="https://m.example/{name}")["lock"] == LOCK


def test_host_with_the_lock_and_exactly_its_packages_is_done():
    assert described()["installed"] is True


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        {"main": {"python": "3.11.2", "packages": {"torch": "2.13.0+cpu"}}},
        {"main": {"python": "3.11.2", "packages": {"torch": "2.12.0", "typing_extensions": "4.16.0"}}},
        {"main": {"python": "3.11.2", "packages": {**INSTALLED["main"]["packages"], "pip": "25"}}},
        {"main": {"python": "3.1.2", "packages": INSTALLED["main"]["packages"]}},
        {"main": {"python": None, "packages": None}},
        {"main": {**INSTALLED["main"], "changed_files": {"torch": "lib/torch.py"}}},
    ],
)
def test_anything_else_is_installed_again(found):
    assert described(installed=found)["installed"] is False


def test_what_conda_brings_is_no_matter_of_the_wheels_lock():
    by_conda = {**MAIN, "interpreter": {"source": "conda", "path": None, "packages": []}}
    asked = described(environment=by_conda)["digest"]
    lock = LOCK.replace(described()["digest"], asked)
    more = {"main": {**INSTALLED["main"], "packages": {**INSTALLED["main"]["packages"], "pip": "25"}}}
    assert described(environment=by_conda, installed=more, text=lock)["installed"] is True
    other = {"main": {**INSTALLED["main"], "packages": {"torch": "2.12.0"}}}
    assert described(environment=by_conda, installed=other, text=lock)["installed"] is False
    assert (described(environment=by_conda)["conda"], described()["conda"]) == (True, False)


@pytest.mark.parametrize(
    ("changed", "reinstall"),
    [
        ({}, []),
        ({"torch": "lib/torch.py", "filelock": "lib/x.py"}, ["filelock", "torch"]),
        ({"horovod": "lib/x.so"}, []),  # which another role installs
    ],
)
def test_packages_with_a_changed_file_are_installed_again(changed, reinstall):
    found = {"main": {**COMPILED["main"], "changed_files": changed}}
    environment = described(installed=found, environment={**MAIN, "build": {"version": "0.28.1"}})
    assert (environment["reinstall"], environment["installed"]) == (reinstall, not reinstall)


COMPILED = {"main": {"python": "3.11.2", "packages": {**INSTALLED["main"]["packages"], "horovod": "0.28.1"}}}


@pytest.mark.parametrize(("build", "installed"), [({"version": "0.28.1"}, True), (None, False)])
def test_what_is_compiled_is_no_matter_of_the_lock(build, installed):
    assert described(installed=COMPILED, environment={**MAIN, "build": build})["installed"] is installed


@pytest.mark.parametrize("line", ["torch", "torch>=2.0", "torch=2.0", "<html>", "a==1 b==2"])
def test_what_pins_nothing_is_no_lock(line):
    with pytest.raises(ValueError):
        locked_packages(f"{BODY}{line}\n")


NO_LOCKS = [BODY, LOCK.replace(DIGEST, "0" * 16), f"{LOCK}torch>=2.0\n", LOCK.replace("2.13.0", "2.12.0")]


@pytest.mark.parametrize("text", [None, "", "\0", *NO_LOCKS])
def test_missing_and_foreign_locks_count_for_nothing(text):
    found = described(text)
    assert (found["lock"], found["installed"]) == ("", False)


def test_a_lock_of_nothing_is_a_lock():
    nothing = {**MAIN, "requirements": []}
    text = LOCK.replace(BODY, "").replace(DIGEST, request_digest(nothing, PLATFORM, MAIN["index"]))
    found = described(text, {"main": {"python": "3.11.2", "packages": {}}}, nothing)
    assert (found["lock"], found["installed"]) == (text, True)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (LOCK, ""),
        ("", ""),
        (LOCK.replace(DIGEST, "0" * 16) + "--index-url https://evil.example\n", ""),  # of another request: not read
        (LOCK + "--index-url https://evil.example\n", "The line '--index-url https://evil.example' is not a package"),
        (LOCK.replace("2.13.0", "2.12.0"), "It has 2.12.0+cpu for the requirement torch==2.13.0;"),
        (LOCK.partition("typing")[0], "It has nothing for the requirement typing-extensions;"),
    ],
)
def test_a_host_is_told_why_its_lock_does_not_count(text, refused):
    found = described(text)["refused"]
    assert found.startswith(refused) and bool(found) is bool(refused)


def test_relock_disregards_the_lock():
    assert described(relock=True)["lock"] == ""


@pytest.mark.parametrize(
    ("more", "index"),
    [
        ({}, {"name": "cpu", "url": "https://wheels.example/cpu"}),
        ({"index_url": "https://m.example/whl/{name}"}, {"name": "cpu", "url": "https://m.example/whl/cpu"}),
        ({"index_url": ""}, None),
        ({"no_index": True}, None),
    ],
)
def test_wheel_index_can_be_replaced_or_dropped(more, index):
    assert described(**more)["index"] == index


def test_environment_without_index_has_none():
    assert described(environment={**MAIN, "index": None}, index_url="https://m.example")["index"] is None


def entry(digest, lock="", relock=False):
    """A described environment, as far as the assignment looks at it."""
    return {"digest": digest, "lock": lock, "relock": relock}


def test_first_host_that_asks_solves():
    hosts = {"a": {"main": entry("d1")}, "b": {"main": entry("d1")}, "c": {"main": entry("d2")}}
    assert assign(hosts) == {"d1": {"host": "a", "lock": ""}, "d2": {"host": "c", "lock": ""}}


def test_a_lock_that_exists_serves_hosts_before_it_too():
    hosts = {"new": {"main": entry("d1")}, "old": {"main": entry("d1", "L1")}, "last": {"main": entry("d1", "L2")}}
    assert assign(hosts) == {"d1": {"host": "old", "lock": "L1"}}


def test_one_host_does_not_choose_for_the_others():
    hosts = {"a": {"main": entry("d1", "evil")}, "b": {"main": entry("d1", "L")}, "c": {"main": entry("d1", "L")}}
    assert assign(hosts) == {"d1": {"host": "b", "lock": "L"}}


@pytest.mark.parametrize(
    ("lock", "relock", "expected"),
    [("L1", False, ("a", "kept")), ("", False, ("a", "kept")), ("kept", False, ("b", "kept")), ("", True, ("a", ""))],
)
def test_the_controller_decides_unless_a_lock_is_to_be_solved_again(lock, relock, expected):
    hosts = {"a": {"main": entry("d1", "", relock)}, "b": {"main": entry("d1", lock, relock)}}
    assert assign(hosts, {"d1": "kept", "d2": "other"}) == {"d1": {"host": expected[0], "lock": expected[1]}}


def test_no_environments_need_no_assignment():
    assert assign({"a": {}}) == {}


@given(st.text(alphabet="aZ9-_.", min_size=1))
@example("NVIDIA.cublas__cu-12")
def test_nodes_compare_names_as_packaging_does(name):
    """module_utils runs where packaging is not."""
    assert normalise(name) == canonicalize_name(name)
