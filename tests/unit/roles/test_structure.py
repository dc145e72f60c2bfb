# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far it is from a role to what acts: chains of included files, and how much stands in one."""

import re
from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.units import UNITS

ROLES = Path(__file__).resolve().parents[3] / "roles"
DEPTH, LINES = 4, 80
NESTED = ("block", "rescue", "always")


def tasks_of(path):
    """Every task of a file, those in blocks among them; a block itself is none."""
    waiting, found = list(yaml.safe_load(path.read_text(encoding="utf-8")) or []), []
    while waiting:
        task = waiting.pop()
        if "block" in task:
            waiting += [inner for part in NESTED for inner in task.get(part, [])]
        else:
            found.append(task)
    return found


def module(task, *names):
    """Arguments of the task where it is one of these modules, by its short or its full name."""
    return next((task[key] for key in task for name in names if key in (name, f"ansible.builtin.{name}")), None)


def decided(path, task, name):
    """Names that one which is decided at run time can stand for: a file that the task names, or the value of a role's option."""
    words = re.findall(r"'(\w+)'", f"{name} {task.get('loop', '')}")
    specs = path.parents[1] / "meta" / "argument_specs.yml"
    options = (
        yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"] if specs.exists() else {}
    )
    words += [
        choice
        for option, spec in options.items()
        if f"{{{{ {option} }}}}" in name
        for choice in spec.get("choices", [])
    ]
    found = [f"{word}.yml" for word in dict.fromkeys(words) if (path.parent / f"{word}.yml").exists()]
    assert found, f"{path}: {name} stands for no file"
    return found


def files_included(path, task):
    """Task files that a task continues in. A name that is decided at run time stands for every file it can be."""
    given = module(task, "include_tasks", "import_tasks")
    if given is not None:
        name = (given if isinstance(given, str) else given["file"]).replace("{{ role_path }}/..", str(ROLES))
        return [path.parent / one for one in (decided(path, task, name) if "{{" in name else [name])]
    role = module(task, "include_role", "import_role")
    if role is None:
        return []
    name, entry = role["name"].removeprefix("allreduce.gpu."), role.get("tasks_from", "main").removesuffix(".yml")
    return [ROLES / name / "tasks" / f"{entry}.yml"]


def chains(path, before=()):
    """Chains of files that begin with this one and go to an end."""
    assert path not in before, f"{path} includes itself"
    here = (*before, path)
    included = [one for task in tasks_of(path) for one in files_included(path, task)]
    return [chain for one in included for chain in chains(one, here)] or [here]


def entry_points():
    """Files that nobody of the same role includes: main.yml and what tasks_from names."""
    for role in sorted(ROLES.iterdir()):
        files = sorted((role / "tasks").rglob("*.yml"))
        within = {one for path in files for task in tasks_of(path) for one in files_included(path, task)}
        yield from (path for path in files if path not in within)


def task_files():
    return sorted(ROLES.glob("*/tasks/**/*.yml"))


def test_a_chain_is_measured(tmp_path):
    """A measure that finds nothing would let everything pass."""
    names = ["main", "a", "b", "c"]
    for name, following in zip(names, [*names[1:], None], strict=True):
        task = (
            {"ansible.builtin.include_tasks": {"file": f"{following}.yml"}}
            if following
            else {"ansible.builtin.ping": None}
        )
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump([{"block": [], "rescue": [task]}]))
    assert [len(chain) for chain in chains(tmp_path / "main.yml")] == [4]


def test_what_acts_is_at_most_three_files_away_from_an_entry_point():
    found = [chain for path in entry_points() for chain in chains(path)]
    assert len(found) > 20
    long = [
        " > ".join(f"{path.parents[1].name}/{path.stem}" for path in chain) for chain in found if len(chain) > DEPTH
    ]
    assert not long, long


def test_a_file_is_read_at_a_glance():
    long = [path for path in task_files() if len(path.read_text(encoding="utf-8").splitlines()) > LINES]
    assert not long, long


def test_no_file_is_left_that_nobody_includes():
    named = {
        "main.yml",
        "contact.yml",
        "measure.yml",
        "plan.yml",
        "next.yml",
        "check_lock.yml",
        "directory.yml",
        "contradictions.yml",
    }
    strays = [path for path in entry_points() if path.name not in named]
    assert not strays, strays


def test_actions_measure_what_they_change():
    """A change that a role makes with a module of ansible-core notifies the handler of role stack."""
    names = [task.get("name", "") for path in task_files() for task in tasks_of(path)]
    assert names
    assert not [name for name in names if "state again" in name]
    measured = [path for path in task_files() for task in tasks_of(path) if "allreduce.gpu.node_state" in task]
    assert {path.parents[1].name for path in measured} <= {"stack", "verify", "cuda_repository"}
    assert len(measured) <= 3


def services(path):
    """Names of the services that a file's tasks set; a variable stands for its values, on any family of systems."""
    values = [yaml.safe_load(one.read_text(encoding="utf-8")) or {} for one in path.parents[1].glob("vars/*.yml")]
    for task in tasks_of(path):
        name = task.get("allreduce.gpu.service", {}).get("name", "")
        variable = re.fullmatch(r"{{ (__\w+) }}", name)
        yield from (one[variable[1]] for one in values if variable[1] in one) if variable else [name]


def test_lists_are_shown_as_text():
    """Ansible prints what debug is given as JSON, in a user's own configuration: a sentence may be, a list or a fact may not."""
    shown, loops = [], []
    for path in sorted(ROLES.glob("*/tasks/*.yml")):
        for task in tasks_of(path):
            given = module(task, "debug")
            if given is not None and not isinstance(given.get("msg"), str):
                shown.append((path, task["name"]))
            items = task.get("loop")
            lists = isinstance(items, list) and any(isinstance(item, (list, dict)) for item in items)
            if lists and not task.get("loop_control", {}).get("label"):
                loops.append((path, task["name"]))
    assert (shown, loops) == ([], [])


def test_services_that_roles_set_are_declared():
    """Action service refuses others; those of an answer's list are the subject's own."""
    found = {
        name: path.parents[1].name for path in task_files() for name in services(path) if name and "item" not in name
    }
    assert {"nvidia-persistenced", "chrony", "chronyd", "allreduce-health.timer"} <= set(found)
    strays = {name: role for name, role in found.items() if name not in UNITS}
    assert not strays, f"{strays}: name it in the units of the component (drift/components.py) or of the subject"


def commands(tasks, environment=None):
    """Yield the words of each command, and the environment that it or a block around it has."""
    for task in tasks:
        own = task.get("environment", environment)
        for part in ("block", "rescue", "always"):
            yield from commands(task.get(part, []), own)
        if "ansible.builtin.command" in task:
            yield str(task["ansible.builtin.command"]), own or {}


def test_package_managers_speak_the_language_whose_words_are_known():
    """What they said is given to the filter that recognizes causes."""
    found = [
        (path, environment)
        for path in task_files()
        if "_package_problem" in path.read_text(encoding="utf-8")
        for words, environment in commands(yaml.safe_load(path.read_text(encoding="utf-8")))
        if re.search(r"\b(apt-get|dnf)\b|_refresh", words)
    ]
    assert len(found) >= 2
    assert [path for path, environment in found if environment.get("LC_ALL") != "C.UTF-8"] == []


def test_tasks_do_not_stand_in_folders_of_package_managers():
    """What differs between systems is in vars/, or in the actions: a task file for one manager leaves the other out."""
    assert not [path for path in ROLES.glob("*/tasks/*") if path.is_dir()]
