# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where environments are made: beside the one in use where something else is asked for, in its place where it is repaired."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import build_digest, request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.places import (
    describe_places,
    environment_directory,
    lock_files,
)

PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
INTERPRETER = {"source": "distribution", "path": "/usr/bin/python3.11", "packages": ["python3.11"]}
BUILD = {"version": "0.28.1", "source": {"file": "h.tar.gz", "sha256": "0"}, "frameworks": ["pytorch"], "tools": []}
MAIN = {
    "name": "main", "python": "3.11", "accelerator": "cpu", "requirements": ["torch==2.13.0", "mpi4py", "catboost"],
    "frameworks": {"pytorch": "2.13.0"}, "index": None, "interpreter": INTERPRETER,
}  # fmt: skip
CONDA = {**MAIN, "interpreter": {"source": "conda", "path": None, "packages": []}}
DIGEST = request_digest(parse(Environment, MAIN), parse(System, PLATFORM))
LOCK = f"# Solved on gpu-1\n# request: {DIGEST}\ntorch==2.13.0 \\\n    --hash=sha256:{'a' * 64}\nnumpy==2.4.6 --hash=sha256:{'b' * 64}\n"
DIRECTORY = environment_directory(MAIN, PLATFORM, LOCK)
OLDER = ".main-000000000000"
FOUND = {"python": "3.11.2", "home": "/usr/bin", "target": DIRECTORY, "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
         "lock": {"request": DIGEST, "packages": {}}}  # fmt: skip
ITEM = {"digest": DIGEST, "installed": True, "lock": LOCK}


def place(planned=None, kept=(), lock=LOCK, conda=None, remade=(), **item):
    """Where the only environment is made; found: what is there, None for nothing."""
    found = item.pop("found", FOUND)
    kept = [{"directory": one, "name": "main", "request": DIGEST} for one in kept]
    state = {"environments": {"main": found} if found else {}, "environments_kept": kept}
    plan = {DIGEST: {"host": "gpu-1", "lock": lock}}
    described = {"main": {**ITEM, **item}}
    return describe_places([planned or MAIN], PLATFORM, described, plan, state, conda or {}, remade)["main"]


def short(answer):
    """What is done: where, and whether it is made anew, from what, taken into use, and after Horovod."""
    return tuple(answer[key] for key in ("at", "create", "seed", "switch", "late", "installed"))


FOREIGN = {**FOUND, "target": "/data/envs/main"}
PLAIN = {**FOUND, "target": None}
OTHER = {**FOUND, "target": OLDER}
NEWER_TORCH = {**OTHER, "packages": {"torch": "2.12.0", "numpy": "2.4.6"}}
OTHER_PYTHON = {**OTHER, "python": "3.10.1"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (DIRECTORY, False, "", False, False, True)),
        # Nothing there; there, of an earlier run that verified it, without its link; asked for again.
        ({"found": None, "installed": False}, (DIRECTORY, True, "", True, False, False)),
        ({"found": None, "installed": False, "kept": [DIRECTORY]}, (DIRECTORY, False, "", True, False, True)),
        ({"found": OTHER, "installed": False, "kept": [DIRECTORY]}, (DIRECTORY, False, "", True, False, True)),
        # Another one is made beside it, from a copy where no framework changes.
        ({"found": OTHER, "installed": False}, (DIRECTORY, True, OLDER, True, False, False)),
        ({"found": NEWER_TORCH, "installed": False}, (DIRECTORY, True, "", True, False, False)),
        ({"found": OTHER_PYTHON, "installed": False}, (DIRECTORY, True, "", True, False, False)),
        ({"found": OTHER, "lock": LOCK, "installed": True, "digest": DIGEST}, (OLDER, False, "", False, False, True)),
        # Damaged: repaired in its place; made anew there where its interpreter is another.
        ({"installed": False}, (DIRECTORY, False, "", True, False, False)),
        ({"installed": False, "found": {**FOUND, "python": "3.10.1"}}, (DIRECTORY, True, "", True, False, False)),
        # From before there were links: taken over, or replaced.
        ({"found": PLAIN}, ("main", False, "", True, False, True)),
        ({"found": PLAIN, "installed": False}, (DIRECTORY, True, "", True, False, False)),
        # Somebody's own link is left alone, and never copied.
        ({"found": FOREIGN}, ("main", False, "", False, False, True)),
        ({"found": FOREIGN, "installed": False}, (DIRECTORY, True, "", True, False, False)),
        # A run broke before it recorded the lock.
        ({"found": {**FOUND, "lock": {"request": "0" * 16, "packages": {}}}}, (DIRECTORY, False, "", True, False, True)),
        # Check mode, where nothing is solved.
        ({"found": OTHER, "installed": False, "lock": ""}, (OLDER, True, "", True, False, False)),
        ({"found": None, "installed": False, "lock": ""}, ("main", True, "", True, False, False)),
    ],
)  # fmt: skip
def test_where_it_is_made(given, expected):
    assert short(place(**given)) == expected


@pytest.mark.parametrize(
    ("horovod", "kept", "expected"),
    [
        ("as planned", [], (DIRECTORY, False, "", False, False, True)),
        ("missing", [], (DIRECTORY, False, "", False, False, True)),
        ("another", [], (DIRECTORY, True, OLDER, True, True, False)),
        ("another", [DIRECTORY], (DIRECTORY, False, "", True, False, True)),
    ],
)
def test_another_build_of_horovod_is_another_environment(horovod, kept, expected):
    planned = {**MAIN, "build": BUILD}
    directory = environment_directory(planned, PLATFORM, LOCK)
    assert directory != DIRECTORY
    expected = tuple(directory if one == DIRECTORY else one for one in expected)
    digest = build_digest(parse(Environment, planned), parse(System, PLATFORM), {"torch": "2.13.0"})
    found = {
        **FOUND,
        "target": OLDER if horovod == "another" else directory,
        "horovod": digest if horovod == "as planned" else "0",
    }
    answer = place(planned, [directory if one == DIRECTORY else one for one in kept], found=found)
    assert short(answer) == expected
    assert answer["compiled"] == {"horovod": "0.28.1"}


def test_what_conda_made():
    """It has made the environment already; the wheels come into it."""
    lock = "@EXPLICIT\nhttps://c.example/python-3.11.9-0.conda\n"
    at = environment_directory(CONDA, PLATFORM, "", lock)
    digest = request_digest(parse(Environment, CONDA), parse(System, PLATFORM))
    other = {**FOUND, "home": None, "target": OLDER, "conda": {"packages": {}}}
    given = {"planned": CONDA, "conda": {"main": {"at": at, "lock": lock}}, "digest": DIGEST}
    assert digest != DIGEST
    assert short(place(found=other, installed=False, remade=["main"], kept=[at], **given)) == (
        at,
        False,
        "",
        True,
        False,
        False,
    )
    assert short(place(found={**other, "target": at}, **given)) == (at, False, "", False, False, True)
    assert place(**given)["conda_lock"] == lock
    assert environment_directory(CONDA, PLATFORM, LOCK) == ""
    assert environment_directory({**CONDA, "requirements": []}, PLATFORM, "", lock) != at


def test_modules_that_show_that_it_works():
    """mpi4py needs the host's MPI, which comes when somebody trains."""
    assert place()["modules"] == ["torch", "catboost"]


@pytest.mark.parametrize(
    ("planned", "lock", "same"),
    [
        (MAIN, LOCK.replace("gpu-1", "gpu-2"), True),
        ({**MAIN, "interpreter": {**INTERPRETER, "path": "/bin/python3.11"}}, LOCK, False),
        ({**MAIN, "interpreter": {**INTERPRETER, "packages": ["python3.11-minimal"]}}, LOCK, True),
        ({**MAIN, "index": {"name": "cpu", "url": "https://mirror.example"}}, LOCK, True),
        ({**MAIN, "interpreter": {**INTERPRETER, "source": "standalone"}}, LOCK, False),
        ({**MAIN, "python": "3.12"}, LOCK, False),
        (MAIN, LOCK.replace("2.4.6", "2.4.7"), False),
    ],
)
def test_the_directory_depends_on_what_it_holds(planned, lock, same):
    assert (environment_directory(planned, PLATFORM, lock) == DIRECTORY) is same


@pytest.mark.parametrize(
    ("in_use", "kept", "path"),
    [
        (DIGEST, [OLDER], "/locks/main.txt"),
        ("0" * 16, [OLDER, DIRECTORY], f"/envs/{OLDER}/allreduce-lock.txt"),
        ("0" * 16, [], "/locks/main.txt"),
        (None, [DIRECTORY], f"/envs/{DIRECTORY}/allreduce-lock.txt"),
    ],
)
def test_the_lock_of_an_older_environment_answers_its_request(in_use, kept, path):
    found = {"main": {**FOUND, "lock": {"request": in_use, "packages": {}}}} if in_use else {}
    kept = [{"directory": one, "name": "main", "request": DIGEST} for one in kept]
    state = {"environments": found, "environments_kept": kept}
    assert lock_files([MAIN], PLATFORM, state, "/envs", "/locks") == [{"name": "main", "path": path}]
