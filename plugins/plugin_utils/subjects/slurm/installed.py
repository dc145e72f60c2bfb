# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages and files of the role on a host of a cluster of its own, and their removal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ....module_utils.settings.slurm import FILES, INSTALLED, OURS
from ....module_utils.settings.slurm_probe import DROP_IN
from ...cluster.address import cluster_address
from ...documents.parsing import parse
from ...documents.slurm import SlurmNode
from ...problems.problem import Problem
from ..monitoring.programs import system_of
from ..subject import Node
from . import backup, health, limits, switches
from . import cluster as configuration
from .cluster import DIRECTORY, Cluster
from .decide import in_use, models_of, unfit
from .programs import CONTROLLER_PORT, ON_CONTROLLER, ON_NODE, Distribution, distribution_of
from .request import CONTROLLERS, LOGIN_NODES, PRESENT, is_node_name, misfits, problems, request, state_of

NAMES = {"path": "/etc/hosts", "block_name": "allreduce.gpu slurm", "in_place": True}
# There as long as slurmctld has not been told of its files.
DUE = "/var/lib/allreduce/slurm_due.json"
BINARIES = "slurm-wlm-basic-plugins"  # the package that makes the user slurm
# The service that a GPU's device files are there with, where there is one.
DEVICES = "nvidia-persistenced.service nvidia-fabricmanager.service"


def shared(node: Node) -> dict[str, Any]:
    """Return the facts about the cluster that every node needs: ``problems``, and without any ``address`` of its controller, the ``digest``
    of what slurmd takes over as it starts, and ``checked``: whether health programs are named. It is the same for all, so that one host
    can ask for it.
    """
    made = _whole(node)
    if isinstance(made, list):
        return {"problems": made}
    digest = configuration.at_start(made, "slurmd")
    return {"problems": [], "address": made.address, "digest": digest, "checked": made.checked}


def _whole(node: Node) -> Cluster | list[Problem]:
    """Return the cluster of which a host is one."""
    host = next(iter(node.groups.get(CONTROLLERS) or ()), "")
    known = node.known.get(host) or {}
    facts = known.get("ansible_facts") or {}
    row = distribution_of(host, system_of(facts))
    if state_of(known) != PRESENT or not facts.get("gpu_slurm"):
        return [Problem("slurm_not_ready", host)]
    if isinstance(row, Problem):
        return [row]
    about = Node(host, known, facts, node.known, node.groups)
    return cluster_of(about, row, parse(SlurmNode, facts["gpu_slurm"], "gpu_slurm"))


def answer(node: Node, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the work of the role on a host: ``problems``, and without any ``first``: files before the packages, ``packages``, ``files``,
    and ``services`` as {name, unit}; of the controller also ``told``, the command that tells slurmctld of its files, and ``accounting``,
    options of slurm_accounting. cluster: what shared returned.
    """
    found = [*problems(node.variables), *misfits(node.groups, node.variables)]
    row = None if found else distribution_of(node.name, system_of(node.facts))
    if isinstance(row, Problem):
        found.append(row)
    if found or not isinstance(row, Distribution):
        return {"problems": found}
    measured = parse(SlurmNode, node.facts.get("gpu_slurm") or {}, "gpu_slurm")
    if measured.foreign:
        return {"problems": [Problem("slurm_foreign", node.name, {"directory": DIRECTORY})]}
    if node.name in (node.groups.get(CONTROLLERS) or ()):
        return controller(node, row, measured)
    if node.name in (node.groups.get(LOGIN_NODES) or ()):
        return login_node(node, row, measured)
    return compute_node(node, row, measured, cluster)


def controller(node: Node, row: Distribution, measured: SlurmNode) -> dict[str, Any]:
    """Return the work on the host of slurmctld."""
    made = cluster_of(node, row, measured)
    if isinstance(made, list):
        return {"problems": made}
    owner = _user(node)
    texts = configuration.contents(made)
    directory = {"path": configuration.STATE, "state": "directory", "mode": "0755", "owner": owner, "group": owner}
    closed, told = {"mode": "0600", "owner": owner, "group": owner}, {"then": ["touch", DUE]}
    restarted = [(name, configuration.at_start(made, name)) for name in ("slurmdbd", "slurmctld")]
    return {
        "problems": [],
        "first": [
            _record(node, row.controller, measured),
            {"path": backup.PROGRAM, "content": backup.SCRIPT, "mode": "0755"},
            *(_drop_in(name, digest, backup.UNIT if name == "slurmdbd" else "") for name, digest in restarted),
        ],
        "packages": list(row.controller),
        "files": [
            {**NAMES, "block": _names(made)},
            directory,
            {"path": f"{DIRECTORY}/slurmdbd.conf", "content": configuration.accounting(made), **closed},
            *({"path": f"{DIRECTORY}/{name}", "content": text, **told} for name, text in texts.items()),
            *({"path": f"{DIRECTORY}/{name}", "state": "absent", **told} for name in configuration.unwanted(made)),
        ],
        "services": [_service(name) for name in ON_CONTROLLER],
        "told": ["sh", "-c", f"scontrol reconfigure && rm -f {DUE}"],
        "accounting": limits.declared(made.wanted.cluster, made.wanted.qos, made.wanted.accounts),
    }


def compute_node(node: Node, row: Distribution, measured: SlurmNode, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the work on a host of slurmd: no file of Slurm's, since slurmctld sends them all."""
    if cluster["problems"]:
        return {"problems": list(cluster["problems"])}
    address = cluster["address"]
    place = f"[{address}]" if ":" in address else address
    # The package's file with options for slurmd is not read: it could take the controller away.
    options = (
        f"EnvironmentFile=\nEnvironment=SLURMD_OPTIONS=--conf-server={place}:{CONTROLLER_PORT}\nLimitMEMLOCK=infinity\n"
    )
    # Debian 12's unit waits for a slurm.conf.
    unit = _drop_in("slurmd", cluster["digest"], options, f"ConditionPathExists=\nAfter={DEVICES}\n")
    return {
        "problems": [],
        "first": [_record(node, row.node, measured), unit],
        "packages": list(row.node),
        "files": [],
        "services": [_service(name) for name in ON_NODE],
    }


def login_node(node: Node, row: Distribution, measured: SlurmNode) -> dict[str, Any]:
    """Return the work on a host that users log in to: Slurm's commands, with the files of the controller.

    Commands of 22.05 get no included files from it, and none runs a daemon that would.
    """
    made = _whole(node)
    if isinstance(made, list):
        return {"problems": made}
    if old := _old_release(node.name, row, made.controller, made.distribution):
        return {"problems": [old]}
    expected = node.name.partition(".")[0]
    if measured.name.lower() != expected.lower():  # the one by which the controller knows it
        return {"problems": [Problem("slurm_other_name", node.name, {"name": measured.name, "expected": expected})]}
    texts = configuration.contents(made)
    return {
        "problems": [],
        "first": [
            _record(node, row.login, measured),
            *({"path": f"{DIRECTORY}/{name}", "content": text} for name, text in texts.items()),
            *({"path": f"{DIRECTORY}/{name}", "state": "absent"} for name in configuration.unwanted(made)),
        ],
        "packages": list(row.login),
        "files": [],
        "services": [_service("munge")],
    }


def cluster_of(node: Node, row: Distribution, measured: SlurmNode) -> Cluster | list[Problem]:
    """Return the whole cluster as its controller sees it, or what is wrong with it. node: the controller."""
    known = node.known
    models, found = models_of(node)
    requests = {name: request(known[name]) for name in models}
    version, wanted = measured.version or row.slurm, request(node.variables)
    found += unfit(version, requests, models)
    found += switches.problems({name: requests[name].switch for name in models})
    found += [one for name in models for one in _refused(name, known[name], node.name, row, wanted.cgroups)]
    if not is_node_name(measured.name):
        found.append(Problem("slurm_no_node_name", node.name, {"name": measured.name}))
    address = cluster_address(known[node.name])
    if not address:
        found.append(Problem("slurm_no_address", node.name))
    if found:
        return found
    firewalled = any(str(one.get("firewall_state")) == "present" for one in known.values())
    nodes = {name: (models[name], requests[name].autodetect) for name in models}
    checked = any(health.is_asked(known[name]) for name in models)
    places = {models[name].name: requests[name].switch for name in models if requests[name].switch}
    return Cluster(measured.name, str(address), version, row, wanted, nodes, firewalled, checked, places, _logins(node))


def _logins(node: Node) -> dict[str, str]:
    """Return {name: address} of the hosts that users log in to, as far as they are known, by what the inventory calls them."""
    known = {name: node.known.get(name) or {} for name in node.groups.get(LOGIN_NODES) or ()}
    found = {name.partition(".")[0]: cluster_address(one) for name, one in known.items() if state_of(one) == PRESENT}
    return {host: str(address) for host, address in found.items() if address and is_node_name(host)}


def _names(cluster: Cluster) -> str:
    """Return lines of /etc/hosts: with the name of a host that asks for a job and cannot be resolved, slurmctld 24.11 stops for ten seconds."""
    nodes = [(model.address, model.name) for model, _autodetect in cluster.nodes.values()]
    nodes += [(address, name) for name, address in cluster.logins.items()]
    return "".join(f"{address} {name}\n" for address, name in [(cluster.address, cluster.controller), *nodes])


def _refused(name: str, variables: Mapping[str, Any], host: str, row: Distribution, cgroups: bool) -> list[Problem]:
    """Return the problems that keep a node from joining the controller HOST, whose distribution is ROW."""
    facts = variables.get("ansible_facts") or {}
    own = distribution_of(name, system_of(facts))
    if isinstance(own, Problem):
        return [own]
    old = _old_release(name, own, host, row)
    found = [old] if old else []
    if cgroups and not parse(SlurmNode, facts["gpu_slurm"], "gpu_slurm").confines:
        found.append(Problem("slurm_no_cgroups", name))
    return found


def _old_release(name: str, own: Distribution, host: str, row: Distribution) -> Problem | None:
    """Return the problem that slurmctld of HOST, whose distribution is ROW, does not take a host's release."""
    if own.slurm in row.joins:
        return None
    return Problem("slurm_old_release", name, {"node": own.slurm, "controller": row.slurm, "host": host})


def _user(node: Node) -> str:
    """Return who owns files of Slurm's: the user of its packages, once they have made it."""
    return configuration.USER if BINARIES in (node.state.get("packages") or {}) else "root"


def _record(node: Node, packages: Iterable[str], measured: SlurmNode) -> dict[str, Any]:
    """Return the file that says which packages the role brought: what was there before stays when the role's goes."""
    there = node.state.get("packages") or {}
    ours = sorted({*measured.installed, *(one for one in packages if one not in there)})
    return {"path": INSTALLED, "content": json.dumps({"format": 1, "packages": ours}) + "\n"}


def _drop_in(unit: str, digest: str, lines: str = "", conditions: str = "") -> dict[str, Any]:
    """Return a drop-in of a unit; one that has changed restarts its service, also after a run that was interrupted."""
    head = f"{OURS} for the configuration {digest}.\n"
    first = f"[Unit]\nStartLimitIntervalSec=0\n{conditions}\n"
    last = f"[Service]\n{lines}Restart=on-failure\nRestartSec=10\n"
    return {"path": DROP_IN % unit, "content": f"{head}{first}{last}"}


def _service(name: str) -> dict[str, str]:
    return {"name": name, "unit": DROP_IN % name}


def removed(node: Node) -> dict[str, Any]:
    """Return the parts that go with the role: services, packages that it brought, and files, last the record; or ``problems`` with that.

    The accounting database, and with it the queue, stay unless the user says otherwise.
    """
    measured = parse(SlurmNode, node.facts.get("gpu_slurm") or {}, "gpu_slurm")
    packages, there = measured.installed, node.state.get("packages") or {}
    services = node.state.get("services") or {}
    # Of what others may use, only what the role brought.
    brought = [name for name, package in (("munge", "munge"), ("mariadb", "mariadb-server")) if package in packages]
    known = {name: services.get(name) or {} for name in (*brought, "slurmdbd", "slurmctld", "slurmd")}
    files = [
        *(DROP_IN % name for name in ("slurmctld", "slurmdbd", "slurmd")),
        backup.PROGRAM,
        backup.STAMP,
        DUE,
        *(
            f"{DIRECTORY}/{name}"
            for name in ("slurm.conf", "cgroup.conf", "gres.conf", "slurmdbd.conf", switches.FILE, *FILES)
        ),
    ]
    return {
        "services": [name for name, one in reversed(known.items()) if one.get("enabled") or one.get("active")],
        "packages": [name for name in packages if name in there],
        "files": [{**NAMES, "block": ""}, *({"path": path, "state": "absent"} for path in files)],
        "record": [{"path": INSTALLED, "state": "absent"}],
        # Files of a cluster of others, in their configuration; one of ours goes as a whole.
        "problems": in_use(node.name, measured) if node.has_record("slurm") else [],
        "drops": request(node.variables).delete_accounting and "mariadb-server" in there,
    }


def programs(node: Node, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files of the programs that Slurm starts on a node for its health, and whether there were any that are to go; or ``problems``
    with that, as long as Slurm starts them.

    cluster: what shared returned. A node that is refused keeps what it has.
    """
    measured = parse(SlurmNode, node.facts.get("gpu_slurm") or {}, "gpu_slurm")
    if state_of(node.variables) == PRESENT:
        found = answer(node, cluster)["problems"]
        is_asked = not found and bool(cluster["checked"])
    else:
        found = list(problems(node.variables))
        is_asked = not found and health.is_expected(node)
    if is_asked and is_node_name(measured.name):
        return {"files": health.files(measured.name), "goes": False, "problems": []}
    runs = ((node.state.get("services") or {}).get("slurmd") or {}).get("active") is not False
    named = [f"{key} in {place}" for key, place in sorted(measured.named.items())] if runs else []
    problem = Problem("slurm_programs_in_use", node.name, {"lines": named})
    return {
        "files": [],
        "goes": not found and node.has_record(health.RECORD),
        "problems": [problem] if named else [],
    }


def is_installed(facts: Mapping[str, Any]) -> bool:
    """Return True if the role has installed anything on a host that was measured."""
    return "slurm_installed" in ((facts.get("gpu_node_state") or {}).get("records") or ())


def obstacle(name: str, variables: Mapping[str, Any], system: Mapping[str, str]) -> Problem | None:
    """Return the reason why there is no Slurm for a node, as far as its system tells; for the plan, before anything is touched."""
    if state_of(variables) != PRESENT:
        return None
    found = distribution_of(name, system)
    return found if isinstance(found, Problem) else None
