# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role has one shape: documented arguments equal to the real defaults, a README, its dependency on the plan."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
ALL = sorted(path for path in ROLES.iterdir() if path.is_dir())
TEMPLATED = re.compile(r"{{.*?}}|{%.*?%}", re.DOTALL)
# Decides the stack the others carry out, so it depends on none.
FIRST = "stack"
# What works on a cluster as it is found, whatever its plan.
WITHOUT_PLAN = {FIRST, "benchmark", "report", "stage", "train"}
# Variables that roles share, documented in architecture and README.
SHARED = {
    "gpu_stack_request", "gpu_stack_host", "gpu_stack_gpu_models", "gpu_stack_take_charge", "gpu_stack_profile", "gpu_cluster_address",
    "gpu_package_lock_timeout",
    "report_directory",
}  # fmt: skip
# How every README ends.
VARIABLES = """
## Variables

`ansible-doc -t role allreduce.gpu.{}` lists them; their types and defaults are in
[meta/argument_specs.yml](meta/argument_specs.yml).
"""

each_role = pytest.mark.parametrize("role", ALL, ids=lambda role: role.name)


def load(path: Path):
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}


def documented(role: Path) -> dict:
    return load(role / "meta" / "argument_specs.yml").get("argument_specs", {})


@each_role
def test_every_entry_point_is_described(role):
    specs = documented(role)
    assert "main" in specs, "meta/argument_specs.yml has no entry point main"
    assert all(spec.get("short_description") for spec in specs.values()), "an entry point has no short_description"


@each_role
def test_a_role_has_tasks(role):
    assert (role / "tasks" / "main.yml").is_file()


@each_role
def test_a_role_has_tests(role):
    """Its name, as a word, is in a test of roles; the one that publishes a fact is run by the scenarios alone."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    named = re.search(rf"[\"'/]{role.name}[\"'/]", tests) or role.name == "gpu_local_fact"
    assert named, f"tests/unit/roles has no test of what {role.name} runs on a node"


@each_role
def test_galaxy_and_documentation_describe_the_role_alike(role):
    described = documented(role)["main"].get("short_description")
    info = load(role / "meta" / "main.yml").get("galaxy_info", {})
    assert info.get("description") == described, (
        "description of meta/main.yml is short_description of argument_specs.yml"
    )


@each_role
def test_every_option_is_typed_and_described(role):
    options = documented(role)["main"].get("options", {})
    lacking = [name for name, option in options.items() if not {"type", "description"} <= set(option)]
    assert not lacking, lacking


@each_role
def test_documented_defaults_are_the_real_ones(role):
    options = {
        name: option for spec in documented(role).values() for name, option in (spec.get("options") or {}).items()
    }
    told = {name: option["default"] for name, option in options.items() if "default" in option}
    assert told == load(role / "defaults" / "main.yml"), (
        "meta/argument_specs.yml and defaults/main.yml have other defaults"
    )


def test_a_shared_variable_has_one_default_and_one_type():
    specs = [
        (name, option) for role in ALL for spec in documented(role).values() for name, option in spec["options"].items()
    ]
    for shared in SHARED:
        found = [option for name, option in specs if name == shared]
        assert len({option["type"] for option in found}) == 1, shared
        assert len({str(option["default"]) for option in found if "default" in option}) <= 1, shared


@each_role
def test_variables_are_named_after_the_role(role):
    strangers = [name for name in load(role / "defaults" / "main.yml") if not name.startswith(f"{role.name}_")]
    assert not set(strangers) - SHARED
    internal = [
        name for path in (role / "vars").glob("*.yml") for name in load(path) if not name.startswith(f"__{role.name}_")
    ]
    assert not internal, internal


@each_role
def test_readmes_have_one_shape(role):
    """Title, what the role does, an example, whatever is to be known, and where the variables are."""
    text = (role / "README.md").read_text(encoding="utf-8")
    first, rest = text.split("\n\n", 1)
    assert first == f"# {role.name}"
    assert re.match(r"[A-Z]", rest), "a paragraph that says what the role does comes first"
    examples = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert any(f"allreduce.gpu.{role.name}" in one for one in examples), "an example in YAML names the role"
    assert text.endswith(VARIABLES.format(role.name)), (
        "the README ends with the section Variables, as those of other roles"
    )


def dependencies(role: Path) -> set[str]:
    """Names of the roles that run before this one, also those that only its dependencies name."""
    found = load(role / "meta" / "main.yml").get("dependencies", [])
    listed = [one if isinstance(one, str) else one["role"] for one in found]
    names = {one.removeprefix("allreduce.gpu.") for one in listed}
    return names.union(*(dependencies(ROLES / name) for name in names))


@each_role
def test_the_plan_is_a_dependency(role):
    assert (FIRST in dependencies(role)) != (role.name in WITHOUT_PLAN), (
        "meta/main.yml names role stack as a dependency"
    )


def booleans() -> set[str]:
    specs = [spec for role in ALL for spec in documented(role).values()]
    return {name for spec in specs for name, option in (spec.get("options") or {}).items() if option["type"] == "bool"}


def expressions(value) -> Iterator[str]:
    """Every text of a YAML value that Ansible evaluates."""
    if isinstance(value, dict):
        for key, one in value.items():
            conditions = [one] if isinstance(one, str) else one
            if key in ("when", "that", "failed_when", "changed_when") and isinstance(conditions, list):
                yield from (f"{{{{ ({one}) }}}}" for one in conditions)
            else:
                yield from expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one)
    elif isinstance(value, str):
        yield from TEMPLATED.findall(value)


@each_role
def test_a_boolean_may_come_as_text(role):
    """From -e NAME=false and from INI inventories booleans come as text, and the text "false" is true."""
    names = "|".join(sorted(booleans()))
    places = ("tasks/*.yml", "handlers/*.yml", "vars/*.yml", "templates/*.j2")
    files = [path for place in places for path in sorted(role.glob(place))]
    found = [
        (path.name, one)
        for path in files
        for one in (TEMPLATED.findall(path.read_text("utf-8")) if path.suffix == ".j2" else expressions(load(path)))
        # What is alone is an argument of a module, which converts it.
        if (path.parent.name in ("vars", "templates") or not re.fullmatch(r"{{ \w+ }}", one))
        and re.search(rf"(?<!['\w])({names})\b(?!\s*\|\s*(bool|default\(omit\)))", re.sub(r"'[^']*'", "''", one))
    ]
    assert not found, found
