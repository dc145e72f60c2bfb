# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No plan violates a constraint that it was made from: each is kept, refused, or spoken of in a warning.

Some hundred requests as a rule, ten thousand with HYPOTHESIS_PROFILE=searching, as `nox -s properties` sets it. What a constraint
means is written here again, from docs/stack.md.
"""

from __future__ import annotations

import os
import re

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS, FRAMEWORKS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.request_keys import KEYS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import choose
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

MANY = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "searching" else 200
TABLES = load()
OSES = [f"{row['id']} {row['version']}" for row in TABLES.rows("distros")]
MODELS = [row["model"] for row in TABLES.rows("gpus")]
INTERPRETERS = [None, None, None, "distribution", "standalone", "conda", "/usr/bin/python3.10", "/opt/python3.12"]
# Of keys that are no versions; of the others, all that the tables have is drawn.
WORDS = {
    "driver_source": ["auto", "nvidia", "distribution", "runfile"], "kernel_modules": ["auto", "open", "proprietary"],
    "kernel": ["6.8", "6.17.0-5-generic"], "mig": ["enabled", "1g.10gb"], "gcc": ["11", "13"], "wheels": ["site", "index"],
    "environments": ["one", "split"], "environment_name": ["main", "dl_env"],
}  # fmt: skip
PYTHONS = ["3.8", "3.9.7", "3.10", "3.10.15", "3.11", "3.12", "3.12.1", "3.13", "3.14"]


def labels(name):
    """Return the builds that can follow the plus sign of a version; of what has none test_field.py has the refusals."""
    tags = {build["tag"] for row in TABLES.rows("torch") for build in row["builds"]}
    return {"pytorch": sorted(tags), "nccl": ["cuda12.4", "cuda12.5", "cuda13.0"]}.get(name, [])


def published(name):
    if name == "python":
        return PYTHONS
    given = {"os": "ubuntu 22.04", "gpus": ["A100 SXM4 80GB"], "request": {name: "latest", "wheels": "site"}}
    made = next(one for one in COMPONENTS if one.name == name)
    return sorted({one.version for one in made.candidates(TABLES, read_question(TABLES, given)) if not one.absent})


def constraints(name):
    if name == "pytorch_index":
        return st.sampled_from([*labels("pytorch"), "pypi"])
    if name in WORDS:
        return st.sampled_from(WORDS[name])
    exact = st.sampled_from(VERSIONS[name])
    forms = [
        exact, exact.map(lambda one: ".".join(one.split(".")[:2])), exact.map(lambda one: one.split(".")[0]),
        *(exact.map(operator.__add__) for operator in ("<", ">=", "==", "!=", "<=")),
        exact.map(lambda one: f">={one},<{int(one.split('.')[0]) + 1}"), exact.map(lambda one: f"{one}.*"), st.just("latest"),
    ]  # fmt: skip
    if labels(name):
        labelled_ = st.tuples(exact, st.sampled_from(labels(name))).map("+".join)
        forms += [labelled_, labelled_.map("==".__add__)]
    return st.one_of([*forms, *([st.just("none")] if name in FRAMEWORKS else [])])


VERSIONS = {name: published(name) for name in KEYS if name not in (*WORDS, "pytorch_index")}
# Some are compiled once, for which most would have to say where the wheels come from.
COMPILED = {"deepspeed", "flash_attn", "transformer_engine"}
REQUESTS = st.lists(st.sampled_from(sorted(KEYS)), unique=True, min_size=1, max_size=5).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: constraints(name) for name in names} | ({"wheels": st.just("site")} if COMPILED & set(names) else {})
    )
)
QUESTIONS = st.fixed_dictionaries(
    {
        "os": st.sampled_from(OSES),
        "arch": st.sampled_from(["x86_64", "x86_64", "aarch64"]),
        "gpus": st.lists(st.sampled_from(MODELS), min_size=1, max_size=2) | st.just([]),
        "interpreter": st.sampled_from(INTERPRETERS),
        "request": REQUESTS,
    }
)


def satisfies(version, constraint):
    """A full version, a prefix, a range or latest; with a label, that build."""
    if constraint == "latest":
        return True
    version = version if "+" in constraint else version.partition("+")[0]
    if constraint[0] in "<>=!~":
        return SpecifierSet(constraint).contains(version, prereleases=True)
    wanted, _plus, label = constraint.removesuffix(".*").partition("+")
    have, _plus, build = version.partition("+")
    numbers = [[int(part) for part in re.findall(r"\d+", text)] for text in (wanted, have)]
    return numbers[1][: len(numbers[0])] == numbers[0] and (not label or label == build)


def versions_in(stack, name):
    """Return what a stack has of a component, in each place that has it; a build with its label."""
    if name == "python":
        return [one["python"] for one in stack["environments"]]
    if name in FRAMEWORKS:
        return [labelled(one, name) for one in stack["environments"] if name in one["frameworks"]]
    part = stack.get(name)
    build = f"+cuda{part['cuda']}" if part and name in ("cudnn", "nccl") else ""
    return [part["version"] + build] if part else []


def labelled(environment, name):
    release = environment["frameworks"][name]
    return f"{release}+{tag_of(environment)}" if name == "pytorch" else release


def tag_of(environment):
    """Return the build of PyTorch: of the general index, the one that the table says it has."""
    if environment["index"]:
        return environment["index"]["name"]
    row = next(row for row in TABLES.rows("torch") if row["version"] == environment["frameworks"]["pytorch"])
    return next(build["tag"] for build in row["builds"] if build.get("default"))


def broken(stack, name, constraint):
    """Return True if a stack is not what a constraint asks for."""
    environments = stack["environments"]
    if constraint == "none":
        return any(name in one["frameworks"] for one in environments)
    if constraint == "auto" or name in ("wheels", "gcc", "kernel", "mig"):  # of the host, not of the plan
        return stack["inputs"]["request"].get(name, "auto") != constraint
    if name == "environments":
        return constraint == "one" and len(environments) > 1
    if name == "environment_name":
        return any(one["name"] != constraint for one in environments)
    if name == "pytorch_index":
        named = [
            one["index"]["name"] if one["index"] else "pypi" for one in environments if "pytorch" in one["frameworks"]
        ]
        return set(named) != {constraint}
    if name in ("driver_source", "kernel_modules"):
        return (stack["driver"] or {}).get({"driver_source": "source"}.get(name, name)) != constraint
    found = versions_in(stack, name)
    if name == "driver" and found and constraint == stack["driver"]["branch"]:
        return False
    places = len(environments) if name == "python" else 1
    return len(found) < places or not all(satisfies(one, constraint) for one in found)


def broken_interpreter(stack, value):
    """Return True if an environment has another interpreter than python_env_python, or python_env_manager, asks for."""
    asked = {"path": value} if value.startswith("/") else {"source": value}
    return any(one["interpreter"][key] != wanted for one in stack["environments"] for key, wanted in asked.items())


@settings(max_examples=MANY)
@given(QUESTIONS)
@example(
    {"os": "ubuntu 22.04", "arch": "x86_64", "gpus": ["A10"], "interpreter": None, "request": {"python": "3.10.15"}}
)
@example(
    {
        "os": "ubuntu 22.04",
        "arch": "x86_64",
        "gpus": ["A10"],
        "interpreter": None,
        "request": {"pytorch": "2.1.2+cu118"},
    }
)
@example(
    {
        "os": "ubuntu 22.04",
        "arch": "x86_64",
        "gpus": ["A10"],
        "interpreter": None,
        "request": {"pytorch": "none", "pytorch_index": "cu118", "jax": "latest"},
    }
)
def test_a_plan_keeps_every_constraint_or_says_which_it_does_not(question):
    try:
        stack = choose(question, TABLES)[0]
    except InputError:
        event("a mistake")
        return
    event("a plan" if stack else "a refusal")
    if stack is None:
        return
    said = " ".join(stack["warnings"])
    for name, constraint in (question["request"] | stack["inputs"]["request"]).items():
        if name == "python_env_python":
            continue
        assert not broken(stack, name, constraint) or f"{constraint} was asked for" in said, (name, constraint)
    if question["interpreter"]:
        assert not broken_interpreter(stack, question["interpreter"])
