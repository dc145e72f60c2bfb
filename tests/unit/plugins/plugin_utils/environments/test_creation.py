# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which environments are made, and with which interpreter."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.creation import environments_to_create

LINK = "/opt/allreduce/python/cpython-3.10-linux-aarch64-gnu/bin"
DISTRIBUTION = {"source": "distribution", "path": "/usr/bin/python3.10", "packages": ["python3.10"]}
STANDALONE = {"source": "standalone", "path": None, "packages": []}
NAMED = {"source": "path", "path": "/srv/python/bin/python3.10", "packages": []}
AS_PLANNED = {"python": "3.10.14", "packages": {}, "lock": None, "home": "/usr/bin"}


def to_create(interpreter, found):
    """The environment of a stack on a node where FOUND, or nothing, is in its place."""
    environment = {"name": "main", "python": "3.10", "interpreter": interpreter, "requirements": ["numpy"]}
    stack = {"os": {"id": "rocky", "version": "8", "arch": "aarch64"}, "environments": [environment]}
    return environments_to_create(stack, {"environments": {"main": found} if found else {}})


@pytest.mark.parametrize(
    ("interpreter", "source", "executable"),
    [
        (DISTRIBUTION, "distribution", "/usr/bin/python3.10"),
        (STANDALONE, "standalone", f"{LINK}/python3.10"),
        (NAMED, "path", "/srv/python/bin/python3.10"),
        ({"source": "distribution", "path": None, "packages": []}, "distribution", "3.10"),
        (None, "distribution", "3.10"),
    ],
)
def test_the_interpreter_of_an_environment_that_is_missing(interpreter, source, executable):
    wanted = {"name": "main", "python": "3.10", "source": source, "executable": executable}
    assert to_create(interpreter, None) == [wanted]


@pytest.mark.parametrize(
    ("interpreter", "change", "anew"),
    [
        (DISTRIBUTION, {}, False),
        (DISTRIBUTION, {"python": "3.1.4"}, True),
        (DISTRIBUTION, {"python": None}, True),
        (DISTRIBUTION, {"home": LINK}, True),
        (STANDALONE, {"home": LINK}, False),
        (STANDALONE, {}, True),
        (NAMED, {"home": "/srv/python/bin"}, False),
        (None, {"home": LINK}, False),
    ],
)
def test_an_environment_of_another_interpreter_is_made_anew(interpreter, change, anew):
    assert bool(to_create(interpreter, {**AS_PLANNED, **change})) is anew


@pytest.mark.parametrize("state", [None, {}, {"packages": {}}])
def test_what_was_not_measured_is_left_as_it_is(state):
    stack = {"environments": [{"name": "main", "python": "3.10"}]}
    assert environments_to_create(stack, state) == []
