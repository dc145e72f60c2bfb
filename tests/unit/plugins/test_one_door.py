# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says is read through documents/door.py only: nothing takes a value out of hostvars past it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import document, plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster import members
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import VALIDATORS, is_of_user
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.plan import QUESTIONS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parents[3]
NAME = "hostvars"
# Functions that hand it to the door, or are it.
DOOR = {
    "admitted", "admitted_neighbours", "collect", "fitting", "misplaced", "neighbours", "node_addresses", "other_addresses",
    "scheduled", "told", "verification", "whole", "_values",
}  # fmt: skip
ALLOWED = {
    "plugins/action/cluster_plan.py:_hosts": "the variables are handed to fitting before anything reads them",
    "plugins/action/preflight.py:resolve": "a user's templates may name other hosts; what comes out is judged as a user's value",
    "plugins/action/preflight.py:_world": "what a user wrote, before any node was asked",
    "plugins/lookup/_monitoring.py:run": "the variables of the node itself",
    "plugins/plugin_utils/checks/document.py:verification": "the variables are handed to fitting before anything reads them",
    "plugins/plugin_utils/cluster/members.py:collect": "names of hosts only",
    "plugins/plugin_utils/documents/door.py:told": "the door",
    "plugins/plugin_utils/node/told.py:whole": "the variables are handed to fitting before anything reads them",
}
ALLOWED_YAML = {
    "hostvars[inventory_hostname]": "the variables of the node itself",
    "((hostvars | default({})).localhost": "a fact of the controller, which preflight has set",
    "hostvars[__frameworks_from.downloader].__frameworks_offered": "each wheel is verified by the controller's lock where it is taken",
    "hostvars[groups.controllers[0]].__slurm_key": "the key of the controller that all nodes of its Slurm obey; munge_key judges its form on each",
    "map('extract', hostvars, '__horovod_verified')": "digests, which say which of the wheels that the plan names to take",
}


def is_hostvars(node: ast.AST) -> bool:
    """Return True if an expression is called hostvars: hostvars, node.hostvars, variables["hostvars"], variables.get("hostvars")."""
    if isinstance(node, ast.Name):
        return node.id == NAME
    if isinstance(node, ast.Attribute):
        return node.attr == NAME
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == NAME
    return isinstance(node, ast.Call) and any(isinstance(one, ast.Constant) and one.value == NAME for one in node.args)


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def harmless(tree: ast.AST) -> set[int]:
    """Return the expressions called hostvars that are only handed to the door, or asked for a host's name."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in DOOR:
            found |= {id(one) for one in [*node.args, *(word.value for word in node.keywords)] if is_hostvars(one)}
        if isinstance(node, ast.Compare) and all(isinstance(one, (ast.In, ast.NotIn)) for one in node.ops):
            found |= {id(one) for one in node.comparators if is_hostvars(one)}
    return found


def readers(source: str) -> Iterator[str]:
    """Yield the functions of a file in which hostvars is anything but handed to the door; the same more than once."""

    def visit(node: ast.AST, function: str) -> Iterator[str]:
        if is_hostvars(node) and id(node) not in fine and not _inside_fine(node):
            yield function
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
            yield from visit(child, inner)

    tree = ast.parse(source)
    fine = harmless(tree)
    inside = {id(one) for node in ast.walk(tree) if id(node) in fine for one in ast.walk(node)}

    def _inside_fine(node: ast.AST) -> bool:
        return id(node) in inside

    yield from visit(tree, "")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(hostvars, name): return hostvars[name]", ["f"]),
        ("def f(hostvars): return hostvars.values()", ["f"]),
        ("def f(hostvars): return [one for one in hostvars]", ["f"]),
        ("def f(hostvars): known = hostvars", ["f"]),
        ("def f(hostvars): return g(hostvars)", ["f"]),
        ("def f(variables): return variables['hostvars']['a']", ["f"]),
        ("def f(variables): return variables.get('hostvars')", ["f"]),
        ("def f(node): return node.hostvars", ["f"]),
        ("def f(hostvars, names): return told(hostvars, [one for one in names if one in hostvars], READS)", []),
        ("def f(variables): return admitted(variables['hostvars'], names, READS)", []),
    ],
)
def test_a_reader_is_found(source, found):
    assert list(readers(source)) == found


def test_plugins_read_other_nodes_through_the_door():
    places = {
        f"{path.relative_to(ROOT)}:{function}"
        for path in (ROOT / "plugins").rglob("*.py")
        for function in readers(path.read_text(encoding="utf-8"))
    }
    assert places == set(ALLOWED)


# hostvars handed to a filter of ours, whose Python the test above judges.
HANDED = re.compile(r"allreduce\.gpu\._\w+\(\s*(?:[^()]*,\s*)?hostvars(?:\s*\|\s*default\(\{\}\))?\s*[,)]")


def past(text: str) -> Iterator[str]:
    """Yield what stands around each hostvars of a YAML file or template that is not handed to a filter of ours."""
    text = re.sub(r"(?m)#.*$", "", text)
    fine = [match.span() for match in HANDED.finditer(text)]
    for allowed in ALLOWED_YAML:
        fine += [match.span() for match in re.finditer(re.escape(allowed), text)]
    for match in re.finditer(rf"\b{NAME}\b", text):
        if not any(start <= match.start() < end for start, end in fine):
            yield text[max(match.start() - 40, 0) : match.end() + 40]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{{ hostvars[groups.gpu_nodes[0]].x }}", 1),
        ("{{ names | map('extract', hostvars, 'x') }}", 1),
        ("{{ hostvars | dict2items }}", 1),
        ("{{ names | allreduce.gpu._lost_hosts(hostvars) }}", 0),
        ("{{ names | allreduce.gpu._ssh_cluster(\n hostvars, ansible_play_batch) }}", 0),
        ("{{ hostvars[inventory_hostname] }}  # and hostvars[other]", 0),
    ],
)
def test_a_reader_in_a_role_is_found(text, count):
    assert len(list(past(text))) == count


def test_roles_and_playbooks_read_other_nodes_through_the_door():
    paths = [
        path for part in ("roles", "playbooks") for path in (ROOT / part).rglob("*") if path.suffix in (".yml", ".j2")
    ]
    assert len(paths) > 200
    assert [(path.name, one) for path in paths for one in past(path.read_text(encoding="utf-8"))] == []
    unused = [one for one in ALLOWED_YAML if not any(one in path.read_text(encoding="utf-8") for path in paths)]
    assert unused == []


def test_what_roles_ask_the_door_for_has_a_validator_of_its_own():
    """Anything else is only bounded in size."""
    asked = {path for one in SUBJECTS for path in one.reads_of_others} | {*members.READS, *plan.READS, *document.READS}
    bounded = {
        *(f"ansible_facts.{name}" for name in document.FACTS if f"ansible_facts.{name}" not in VALIDATORS),
        "__verify_monitoring",
    }
    assert {path for path in asked if not is_of_user(path) and path not in VALIDATORS} == bounded


def test_what_roles_ask_of_the_environments_of_others_is_judged_by_its_kind():
    """What the controller has decided for a node is in variables of a role; nobody asks for all facts at once."""
    asked = {path for one in QUESTIONS.values() for path in one.shared if not is_of_user(path)}
    decided = {
        "__frameworks_environments", "__frameworks_places", "__horovod_builds", "__horovod_compiled", "__python_env_conda",
    }  # fmt: skip
    assert {path for path in asked if path not in VALIDATORS} == decided
