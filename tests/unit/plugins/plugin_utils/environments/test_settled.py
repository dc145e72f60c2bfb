# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nobody reads a lock where all environments are as planned; wherever the locks could tell otherwise, they are read."""

import base64
import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.environments import parse_lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import build_digest, request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.builds import assign_builds, describe_builds
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.locks import assign, describe_environments
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.places import (
    describe_places,
    environment_directory,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.settled import are_settled
from hypothesis import given
from hypothesis import strategies as st

PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
INTERPRETER = {"source": "distribution", "path": "/usr/bin/python3.11", "packages": ["python3.11"]}
BUILD = {"version": "0.28.1", "source": {"file": "h.tar.gz", "sha256": "0"}, "frameworks": ["pytorch"], "tools": []}
MAIN = {
    "name": "main", "python": "3.11", "accelerator": "cpu", "requirements": ["torch==2.13.0"], "frameworks": {"pytorch": "2.13.0"},
    "index": None, "interpreter": INTERPRETER,
}  # fmt: skip
COMPILED = {**MAIN, "build": BUILD}
CONDA = {**MAIN, "interpreter": {"source": "conda", "path": None, "packages": []}}
LOCK, NEWER = ({"torch": "2.13.0", "numpy": version} for version in ("2.4.6", "2.4.7"))


def text(environment, lock, hashed="aa"):
    digest = request_digest(parse(Environment, environment), parse(System, PLATFORM))
    pins = "\n".join(f"{name}=={version} --hash=sha256:{hashed * 32}" for name, version in lock.items())
    return f"# request: {digest}\n{pins}\n"


def node(environment=None, locked=None, hashed="aa", wheel=True, **found):
    """The facts of a node that is as planned, but for what is given of its environment."""
    environment, locked = environment or MAIN, locked or LOCK
    planned, system = parse(Environment, environment), parse(System, PLATFORM)
    build = build_digest(planned, system, locked) if planned.build else None
    compiled = {"horovod": planned.build.version} if planned.build else {}
    one = {
        "python": "3.11.2", "home": "/usr/bin", "packages": {**locked, **compiled}, "horovod": build,
        "lock": parse_lock(text(environment, locked, hashed)),
        "target": environment_directory(environment, PLATFORM, text(environment, locked, hashed)), **found,
    }  # fmt: skip
    builds = (
        {build: {"file": "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "sha256": "0" * 64}} if build and wheel else {}
    )
    return (
        {"os": PLATFORM, "environments": [environment]},
        {"environments": {environment["name"]: one}, "horovod_builds": builds},
    )


OTHER_NAME = {**MAIN, "name": "train"}
PLANNED = node()


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [PLANNED],
        [PLANNED, PLANNED],
        [PLANNED, node(OTHER_NAME)],
        [node(COMPILED)],
        # What is compiled is beside the lock, and may be on one of them.
        [PLANNED, node(COMPILED)],
        [node(COMPILED), node(COMPILED, wheel=False)],
        [({"os": PLATFORM, "environments": []}, {"environments": {}})],
    ],
)
def test_settled(nodes):
    assert are_settled(nodes)


@pytest.mark.parametrize(
    "other",
    [
        (None, PLANNED[1]),
        (PLANNED[0], None),
        ({"os": PLATFORM, "environments": []}, None),
        (PLANNED[0], {"environments": {}}),
        (PLANNED[0], {"environments": None}),
        node(python="3.10.1"),
        node(home="/opt/allreduce/python/cpython-3.11/bin"),
        node(packages={**LOCK, "numpy": "2.4.5"}),
        node(packages={**LOCK, "scipy": "1.17.0"}),
        node(changed_files={"numpy": "numpy/__init__.py"}),
        node(lock=None),
        node(lock={"request": "0" * 16, "packages": LOCK}),
        # Made before there were links; somebody's own link; a directory that no release of the role made.
        node(target=None),
        node(target="/data/envs/main"),
        node(target="main-of-mine"),
        node(target=".main-0123456789ab/of-mine"),
        # The others have another lock, or the same with other hashes; also under another name.
        node(locked=NEWER, target=".main-0123456789ab"),
        node(hashed="bb"),
        node(OTHER_NAME, hashed="bb"),
        node(COMPILED, horovod=None),
        node(COMPILED, horovod="0" * 16),
        node(COMPILED, packages=LOCK),
        node(COMPILED, changed_files={"horovod": "horovod/__init__.py"}),
        node(COMPILED, wheel=False),
        node(CONDA, home=None, target=".main-0123456789ab"),
    ],
)
def test_not_settled(other):
    assert not are_settled([PLANNED, other])


@pytest.mark.parametrize(
    ("nodes", "kept", "settled"),
    [
        ([PLANNED, node(OTHER_NAME)], text(MAIN, LOCK), True),
        ([PLANNED], text(MAIN, LOCK, "bb"), False),
        ([node(hashed="bb"), node(hashed="bb")], text(MAIN, LOCK), False),  # all nodes, but not the controller
        ([PLANNED], None, False),  # which is then written
    ],
)
def test_the_lock_that_the_controller_keeps_counts(nodes, kept, settled):
    digest = request_digest(parse(Environment, MAIN), parse(System, PLATFORM))
    assert are_settled(nodes, {digest: kept} if kept else {}) is settled


def test_another_lock_for_the_same_request_is_seen_beside_a_compiled_package():
    assert not are_settled([PLANNED, node(COMPILED, locked=NEWER)])
    assert not are_settled([PLANNED, node(COMPILED, hashed="bb")])


FOUND = {
    "python": st.sampled_from(["3.11.2", "3.11.9", "3.10.1", None]),
    "home": st.sampled_from(["/usr/bin", "/opt/allreduce/python/x/bin"]),
    "packages": st.sampled_from([LOCK, NEWER, {}, {**LOCK, "horovod": "0.28.1"}]),
    "lock": st.sampled_from([None, {"request": "0" * 16, "packages": LOCK}]),
    "changed_files": st.sampled_from([{}, {"numpy": "a"}, {"horovod": "a"}]),
    "horovod": st.sampled_from([None, "0" * 16]),
    "target": st.sampled_from([None, "/data/main", "main", ".main-0123456789ab"]),
}
NODES = st.builds(
    lambda environment, lock, hashed, wheel, found: (
        node(environment, lock, hashed, wheel, **found),
        (environment, lock, hashed),
    ),
    st.sampled_from([MAIN, COMPILED, OTHER_NAME, CONDA]),
    st.sampled_from([LOCK, NEWER]),
    st.sampled_from(["aa", "bb"]),
    st.booleans(),
    st.fixed_dictionaries({}, optional=FOUND),
)


def work(nodes):
    """Whether the locks give roles frameworks and horovod something to do; each node with the lock that its environment was made from."""
    described = {}
    for index, ((stack, state), (environment, lock, hashed)) in enumerate(nodes):
        files = [{"item": {"name": environment["name"]}, "content": encoded(text(environment, lock, hashed))}]
        described[index] = describe_environments(stack["environments"], PLATFORM, files, state["environments"])
    plan = assign(described)
    places = [
        describe_places(stack["environments"], PLATFORM, described[index], plan, state, {}, [])
        for index, ((stack, state), _made) in enumerate(nodes)
    ]
    builds = {
        index: describe_builds(stack["environments"], PLATFORM, {made[0]["name"]: text(*made)}, state)
        for index, ((stack, state), made) in enumerate(nodes)
    }
    return (
        any(one["switch"] or one["late"] or not one["installed"] for place in places for one in place.values())
        or any(not one["installed"] for found in builds.values() for one in found.values())
        or any(not one["wheel"] or one["receivers"] for one in assign_builds(builds).values())
    )


def encoded(words):
    return base64.b64encode(words.encode()).decode()


@given(st.lists(NODES, min_size=1, max_size=3))
def test_where_it_says_settled_the_locks_give_nothing_to_do(nodes):
    nodes = copy.deepcopy(nodes)
    if are_settled([facts for facts, _made in nodes]):
        assert not work(nodes)
