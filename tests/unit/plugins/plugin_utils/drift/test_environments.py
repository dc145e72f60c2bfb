# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Conda, Lock, Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Environment as Found
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import (
    Build,
    Environment,
    Index,
    Interpreter,
    System,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.environments import (
    compare_environments,
    compare_with_lock,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest

SYSTEM = System("debian", "12", "x86_64", "debian")
INDEX = Index("cpu", "https://example.org/cpu")
MAIN = Environment("main", "3.11", accelerator="cpu", requirements=("torch==2.13.0", "numpy<2"), index=INDEX)
PACKAGES = {"torch": "2.13.0+cpu", "numpy": "1.26.4", "filelock": "3.20.0"}
LOCK = Lock(request_digest(MAIN, SYSTEM), PACKAGES)
AS_PLANNED = Found("3.11.2", PACKAGES, LOCK)


def differences(found, planned=MAIN):
    """{subject: (kind, desired, observed, status)} of what differs; everything of an environment has one remedy."""
    compared = compare_environments((planned,), SYSTEM, Observed(environments={"main": found, "theirs": Found("2.7")}))
    assert {one.component for one in compared} == {"environment main"}
    named = {one.subject: one for one in compared if one.differs}
    assert len(named) == len([one for one in compared if one.differs])
    assert {one.remedy for one in named.values()} <= {Remedy.ENVIRONMENT}
    return {subject: (one.kind, one.desired, one.observed, one.status) for subject, one in named.items()}


LOCKED, ASKED = "locked", "requirement"
CASES = {
    "as planned": (AS_PLANNED, {}),
    "without a lock": (
        replace(AS_PLANNED, lock=None),
        {"lock": ("lock", "solved for this request", "", Status.MISSING)},
    ),
    "another interpreter": (
        replace(AS_PLANNED, python="3.12.1"),
        {"Python": ("python", "3.11", "3.12.1", Status.DIFFERS)},
    ),
    "an interpreter that does not run": (
        replace(AS_PLANNED, python=None),
        {"Python": ("python", "3.11", "", Status.MISSING)},
    ),
    "a lock of another request": (
        replace(AS_PLANNED, lock=Lock("0123456789abcdef", {})),
        {"lock": ("lock", "solved for this request", "solved for another", Status.DIFFERS)},
    ),
    "a lock that names no request": (
        replace(AS_PLANNED, lock=Lock(None, PACKAGES)),
        {"lock": ("lock", "solved for this request", "solved for another", Status.DIFFERS)},
    ),
    "changed by hand": (
        replace(AS_PLANNED, packages={**PACKAGES, "filelock": "3.0.0"}),
        {"filelock": (LOCKED, "3.20.0", "3.0.0", Status.DIFFERS)},
    ),
    "a file changed by hand": (
        replace(AS_PLANNED, changed_files={"torch": "lib/python3.11/site-packages/torch/nn.py"}),
        {"torch": ("files", "as installed", "changed: lib/python3.11/site-packages/torch/nn.py", Status.DIFFERS)},
    ),
    "a file changed by hand, below a link": (
        replace(AS_PLANNED, target=".main-0123456789ab", changed_files={"torch": "bin/torchrun"}),
        {"torch": ("files", "as installed", "changed: bin/torchrun in .main-0123456789ab", Status.DIFFERS)},
    ),
    "missing": (
        replace(AS_PLANNED, packages={name: PACKAGES[name] for name in ("torch", "numpy")}),
        {"filelock": (LOCKED, "3.20.0", "", Status.MISSING)},
    ),
    "extra": (
        replace(AS_PLANNED, packages={**PACKAGES, "attrs": "25.1"}),
        {"attrs": (LOCKED, "not installed", "25.1", Status.UNWANTED)},
    ),
    "another version of the request, without a lock": (
        Found("3.11.2", {"torch": "2.12.0", "numpy": "1.26.4"}),
        {
            "torch": (ASKED, "2.13.0", "2.12.0", Status.DIFFERS),
            "lock": ("lock", "solved for this request", "", Status.MISSING),
        },
    ),
    "nothing of the request": (
        Found("3.11.2"),
        {
            "torch": (ASKED, "2.13.0", "", Status.MISSING),
            "numpy": (ASKED, "<2", "", Status.MISSING),
            "lock": ("lock", "solved for this request", "", Status.MISSING),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_environment(case):
    found, expected = CASES[case]
    assert differences(found) == expected


@pytest.mark.parametrize(
    ("version", "difference"),
    [
        ("0.28.1", {}),
        (None, {"horovod": (LOCKED, "0.28.1", "", Status.MISSING)}),
        ("0.28.0", {"horovod": (LOCKED, "0.28.1", "0.28.0", Status.DIFFERS)}),
    ],
)
def test_horovod_is_compiled_and_in_no_lock(version, difference):
    found = replace(AS_PLANNED, packages={**PACKAGES, **({"horovod": version} if version else {})})
    assert differences(found, replace(MAIN, build=Build("0.28.1"))) == difference


def test_a_horovod_that_is_as_planned_is_one_comparison():
    planned = replace(MAIN, build=Build("0.28.1"))
    seen = Observed(environments={"main": replace(AS_PLANNED, packages={**PACKAGES, "horovod": "0.28.1"})})
    rows = [one for one in compare_environments((planned,), SYSTEM, seen) if one.subject == "horovod"]
    assert [(one.desired, one.observed, one.status) for one in rows] == [("0.28.1", "0.28.1", Status.AS_PLANNED)]


STANDALONE = "/opt/allreduce/python/cpython-3.11-linux-x86_64-gnu/bin"
DISTRIBUTION, ANYWHERE = Interpreter(path="/usr/bin/python3.11"), Interpreter()
MANAGED, NAMED = Interpreter("standalone"), Interpreter("path", "/srv/venv/bin/python")
ANY = "any but /opt/allreduce/python"


@pytest.mark.parametrize(
    ("interpreter", "home", "expected"),
    [
        (DISTRIBUTION, "/usr/bin", None),
        (DISTRIBUTION, "/bin", None),
        (DISTRIBUTION, "/usr/local/bin", ("/usr/bin", Status.DIFFERS)),
        (DISTRIBUTION, STANDALONE, ("/usr/bin", Status.DIFFERS)),
        (DISTRIBUTION, None, ("/usr/bin", Status.MISSING)),
        (ANYWHERE, "/usr/local/bin", None),
        (ANYWHERE, STANDALONE, (ANY, Status.DIFFERS)),
        (MANAGED, STANDALONE, None),
        (MANAGED, "/usr/bin", ("/opt/allreduce/python", Status.DIFFERS)),
        (MANAGED, "/opt/allreduce/python-of-others/bin", ("/opt/allreduce/python", Status.DIFFERS)),
        # The interpreter of a virtual environment makes environments whose home is that of its own interpreter.
        (NAMED, "/usr/bin", None),
        (NAMED, "/srv/venv/bin", None),
        (NAMED, STANDALONE, ("/srv/venv/bin", Status.DIFFERS)),
    ],
)
def test_the_interpreter_of_an_environment(interpreter, home, expected):
    found = differences(replace(AS_PLANNED, home=home), replace(MAIN, interpreter=interpreter))
    assert found == ({"interpreter": ("python", expected[0], home or "", expected[1])} if expected else {})


def test_an_interpreter_that_no_plan_names_is_not_compared():
    assert differences(replace(AS_PLANNED, home="/srv/bin"), replace(MAIN, interpreter=None)) == {}


def test_an_absent_environment_lacks_everything():
    compared = compare_environments((MAIN,), SYSTEM, Observed(environments={}))
    assert [(one.subject, one.status) for one in compared] == [
        (subject, Status.MISSING) for subject in ("Python", "torch", "numpy")
    ]


@pytest.mark.parametrize("observed", [Observed(environments=None), Observed(measured=False, environments={})])
def test_an_environment_that_was_not_measured_is_unknown(observed):
    compared = compare_environments((MAIN,), SYSTEM, observed)
    assert {(one.status, one.remedy) for one in compared} == {(Status.UNKNOWN, Remedy.MEASURE)}
    assert len(compared) == 3


def test_a_requirement_without_a_name_is_unknown():
    planned = replace(MAIN, requirements=("https://example.org/horovod.whl",))
    (one,) = compare_environments((planned,), SYSTEM, Observed(environments={"main": AS_PLANNED}))[1:2]
    assert (one.subject, one.status) == ("https://example.org/horovod.whl", Status.UNKNOWN)


@pytest.mark.parametrize(
    ("locked", "installed", "expected"),
    [
        ({"a": None}, {"a": "1"}, []),
        ({"a": None}, {}, [("a", "any version", "", Status.MISSING)]),
        ({"a": "1"}, {"a": None}, [("a", "1", "", Status.DIFFERS)]),
        ({"a": "1.0"}, {"a": "1"}, [("a", "1.0", "1", Status.DIFFERS)]),
        ({}, {"b": "1", "a": None},
         [("a", "not installed", "", Status.UNWANTED), ("b", "not installed", "1", Status.UNWANTED)]),
    ],
)  # fmt: skip
def test_packages_are_exactly_those_of_the_lock(locked, installed, expected):
    found = compare_with_lock("environment main", locked, installed)
    assert [(one.subject, one.desired, one.observed, one.status) for one in found] == expected


CHANGED = [
    (replace(MAIN, requirements=("torch==2.13.0",)), SYSTEM, False),
    (replace(MAIN, python="3.12"), SYSTEM, False),
    (replace(MAIN, accelerator=""), SYSTEM, False),
    (replace(MAIN, index=None), SYSTEM, False),
    (replace(MAIN, index=Index("cu126", "https://example.org/cpu")), SYSTEM, False),
    (MAIN, replace(SYSTEM, version="13"), False),
    (MAIN, replace(SYSTEM, arch="aarch64"), False),
    (MAIN, SYSTEM, True),
    (replace(MAIN, requirements=MAIN.requirements[::-1]), SYSTEM, True),
    (replace(MAIN, index=Index("cpu", "https://mirror.example/cpu")), SYSTEM, True),
    (replace(MAIN, name="other", frameworks={"pytorch": "2.13.0"}), SYSTEM, True),
]


@pytest.mark.parametrize(("environment", "system", "same"), CHANGED)
def test_the_digest_is_over_what_a_solution_depends_on(environment, system, same):
    assert (request_digest(environment, system) == request_digest(MAIN, SYSTEM)) is same


BY_CONDA = replace(MAIN, interpreter=Interpreter("conda"))
RELEASES = {"python": "3.11.9 h1_0", "libjpeg": "9e h2_1"}
FROM_CONDA = Found(
    "3.11.9", {**PACKAGES, "pip": "24.0"}, Lock(request_digest(BY_CONDA, SYSTEM), PACKAGES), conda=Conda(True, RELEASES, RELEASES)
)  # fmt: skip


@pytest.mark.parametrize(
    ("conda", "expected"),
    [
        (FROM_CONDA.conda, {}),  # and pip, of which the lock knows nothing, is none of its business
        (
            Conda(True, {**RELEASES, "python": "3.11.8 h1_0"}, RELEASES),
            {"python (conda)": ("locked", "3.11.9 h1_0", "3.11.8 h1_0", Status.DIFFERS)},
        ),
        (
            Conda(True, {**RELEASES, "tiff": "4 h_0"}, RELEASES),
            {"tiff (conda)": ("locked", "not installed", "4 h_0", Status.UNWANTED)},
        ),
        (
            Conda(True, RELEASES, RELEASES, {"libjpeg": "lib/libjpeg.so"}),
            {"libjpeg (conda)": ("files", "as installed", "changed: lib/libjpeg.so", Status.DIFFERS)},
        ),
        (Conda(False, RELEASES, RELEASES), {"conda": ("conda", "as installed", "interrupted", Status.DIFFERS)}),
        (Conda(True, RELEASES, None), {"conda": ("conda", "as installed", "without a lock", Status.DIFFERS)}),
    ],
)
def test_an_environment_of_conda(conda, expected):
    assert differences(replace(FROM_CONDA, conda=conda), BY_CONDA) == expected


def test_who_made_an_environment():
    made_by_uv = differences(replace(FROM_CONDA, home="/usr/bin", conda=None), BY_CONDA)
    assert made_by_uv == {"interpreter": ("python", "conda", "/usr/bin", Status.DIFFERS)}
    made_by_conda = differences(
        FROM_CONDA, replace(MAIN, interpreter=Interpreter("distribution", "/usr/bin/python3.11"))
    )
    assert made_by_conda["interpreter"] == ("python", "/usr/bin", "", Status.MISSING)


def test_the_wheels_of_an_environment_of_conda_are_solved_for_it():
    assert request_digest(BY_CONDA, SYSTEM) != request_digest(MAIN, SYSTEM)
    assert request_digest(replace(MAIN, interpreter=Interpreter("standalone")), SYSTEM) == request_digest(MAIN, SYSTEM)
