# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List what the scenarios of this checkout prove, and check that data/stack/distros.yml claims no more than that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import OS_NAMES

COLLECTION = "allreduce.gpu."
# What the full run is, in this order; another step may stand between two of them.
WHOLE = (
    "converge", "idempotence", "side_effect molecule/shared/check.yml",
    "side_effect playbooks/verify.yml", "side_effect playbooks/train.yml", "side_effect playbooks/report.yml", "verify",
)  # fmt: skip
# Options of ansible-playbook that leave out something of a playbook.
NARROWING = {"tags", "t", "skip-tags", "limit", "l", "start-at-task", "step", "check", "C"}


@dataclass(frozen=True)
class Scenario:
    """A Molecule scenario: the system of its hosts, as the table names it, and what is done there."""

    name: str
    system: str
    replica: bool
    hosts: int
    converges: str
    sequence: tuple[str, ...]

    @property
    def proof(self) -> str:
        """Return the proof that a row may claim that names this scenario."""
        if self.converges != "site" or self.hosts < 2 or self.left_out(WHOLE):
            return "none"
        return "replica" if self.replica else "real"

    def left_out(self, steps: Iterable[str]) -> list[str]:
        """Return those of these steps that the scenario does not take, or takes before an earlier one."""
        missing, rest = [], list(self.sequence)
        for step in steps:
            if step in rest:
                rest = rest[rest.index(step) + 1 :]
            else:
                missing.append(step)
        return missing


def scenarios(checkout: Path) -> dict[str, Scenario]:
    """Return every scenario below molecule/ that is about a distribution, by its name; one with an outsider is about launching."""
    shared = _read(checkout / ".config" / "molecule" / "config.yml")
    hosts = _read(checkout / "tests" / "lab" / "replicas" / "distributions.yml")
    return {
        path.parent.name: _scenario(checkout, path, shared, hosts)
        for path in sorted(checkout.glob("molecule/*/molecule.yml"))
        if not _read(path)["driver"].get("outsider")
    }


def site_roles(checkout: Path) -> list[str]:
    """Return the names of the roles of playbooks/site.yml, in their order."""
    tasks = [task for play in _read(checkout / "playbooks" / "site.yml") for task in play.get("tasks", [])]
    imported = [task["ansible.builtin.import_role"] for task in tasks if "ansible.builtin.import_role" in task]
    return [role["name"].removeprefix(COLLECTION) for role in imported]


def with_used(checkout: Path, roles: Iterable[str]) -> set[str]:
    """Return these roles, those they depend on and those their tasks include."""
    found, waiting = set(), list(roles)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _used(checkout / "roles" / name)
    return found


def knows(role: Path, row: Mapping) -> bool:
    """Return True if a role has variables for a system, or needs none for any."""
    files = {path.stem for path in (role / "vars").glob("*.yml")} - {"main"}
    return not files or bool(files & {row["family"], row["id"], f"{row['id']}-{row['version']}"})


def refuses(role: Path) -> bool:
    """Return True if a role refuses with a sentence the systems that it has no variables for."""
    tasks = [task for path in (role / "tasks").glob("*.yml") for task in _read(path) or []]
    loaded = [task["loop"] for task in tasks if "ansible.builtin.include_vars" in task]
    return bool(loaded) and all("query('allreduce.gpu._os_variables'" in loop for loop in loaded)


def problems(rows: Iterable[Mapping], known: Mapping[str, Scenario]) -> list[str]:
    """Return where rows of the table claim something else than the scenarios show."""
    rows = list(rows)
    named = [row["scenario"] for row in rows if row["scenario"]]
    found = [f"scenario {name} has no row" for name in known if name not in named]
    found += [f"scenario {name} has more than one row" for name in sorted(set(named)) if named.count(name) > 1]
    return found + [text for row in rows for text in _wrong(row, known)]


def _wrong(row: Mapping, known: Mapping[str, Scenario]) -> list[str]:
    system = f"{row['id']} {row['version']}"
    if row["scenario"] is None:
        return [] if row["proof"] == "none" else [f"{system}: proof {row['proof']} without a scenario"]
    scenario = known.get(row["scenario"])
    if scenario is None:
        return [f"{system}: there is no scenario {row['scenario']}"]
    wrong = []
    if row["proof"] != scenario.proof:
        wrong.append(f"{system}: proof is {row['proof']}, {scenario.name} shows {scenario.proof}")
    if scenario.converges != "site":
        wrong.append(f"{system}: {scenario.name} converges {scenario.converges}")
    if scenario.system != system:
        wrong.append(f"{system}: the host of {scenario.name} is a {scenario.system}")
    if scenario.hosts < 2:
        wrong.append(f"{system}: {scenario.name} trains on {scenario.hosts} host")
    return wrong + [f"{system}: {scenario.name} leaves out {step}" for step in scenario.left_out(WHOLE)]


def _scenario(checkout: Path, path: Path, shared: Mapping, hosts: Mapping) -> Scenario:
    own = _read(path)
    host = hosts[own["driver"].get("distribution", "debian12")]
    provisioners = [one.get("provisioner", {}) for one in (shared, own)]
    playbook = [one["playbooks"]["converge"] for one in provisioners if "converge" in one.get("playbooks", {})][-1]
    sequences = [one.get("scenario", {}).get("test_sequence") for one in (own, shared)]
    return Scenario(
        name=path.parent.name,
        system=_system(host),
        replica="os_release" in host,
        hosts=len(own.get("platforms", shared["platforms"])),
        converges=_converges(checkout, (path.parent / playbook).resolve(), provisioners),
        sequence=tuple(_step(checkout, path.parent, step) for step in next(one for one in sequences if one)),
    )


def _step(checkout: Path, scenario: Path, text: str) -> str:
    """Return a step with the playbooks that it names as seen from the checkout."""
    name, *playbooks = text.split()
    return " ".join([name, *(str((scenario / one).resolve().relative_to(checkout.resolve())) for one in playbooks)])


def _system(host: Mapping) -> str:
    """Return the name of a lab host's system in the table; rebuilds of RHEL go by their major version."""
    release = host.get("os_release")
    if release is None:
        return host["published"].rpartition("/")[2].replace(":", " ")
    version = release["VERSION_ID"] if release["ID"] == "ubuntu" else release["VERSION_ID"].partition(".")[0]
    return f"{OS_NAMES.get(release['ID'], release['ID'])} {version}"


def _converges(checkout: Path, playbook: Path, provisioners: Iterable[Mapping]) -> str:
    """Return site where the playbook is site.yml and no option narrows it; else what it is."""
    options = [re.split("[= ]", text.lstrip("-"))[0] for one in provisioners for text in one.get("ansible_args", [])]
    options += [name for one in provisioners for name in one.get("options", {})]
    narrowed = "part of " if NARROWING & set(options) else ""
    name = playbook.relative_to(checkout.resolve()).as_posix()
    return narrowed + ("site" if name == "playbooks/site.yml" else name)


def _used(role: Path) -> set[str]:
    depends = _read(role / "meta" / "main.yml").get("dependencies", [])
    named = {one if isinstance(one, str) else one["role"] for one in depends}
    for path in (role / "tasks").rglob("*.yml"):
        named |= set(re.findall(rf"name: ({re.escape(COLLECTION)}\w+)", path.read_text(encoding="utf-8")))
    names = {name.removeprefix(COLLECTION) for name in named}
    return {name for name in names if (role.parent / name / "tasks").is_dir()}


def _read(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))
