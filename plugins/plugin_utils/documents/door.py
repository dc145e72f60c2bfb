# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one door for what a node says: all that is read of another node passes here, value by value. Pure.

A node is not trusted by the others. What does not fit is a problem of that node alone, which is left out; the others go on.

What is read is a few variables, which are read once for all nodes: Ansible takes milliseconds to give the variables of a host. If each of
n nodes asked for those of all others, a run would need n * n times as many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..problems.problem import Problem
from . import values
from .firewall import FirewallNode
from .gpu_node import Gpu, GpuNode, MeasuredDriver
from .nccl import NcclNode
from .network import Probe, Speed
from .observed import Observed
from .pcie import PcieNode
from .qos import QosNode
from .rdma import RdmaNode
from .scratch import ScratchNode
from .slurm import SlurmNode
from .stack import Stack
from .tuning import TunedNode
from .values import Unfit, Validator

FACTS = "ansible_facts"


def _speed(value: Any) -> Any:
    """Judge what one end of a pair measured; which pair, the schedule says."""
    values.either(dict)(value)
    values.document(Speed)({**value, "source": "", "target": "", "port": value.get("port", 0)})
    return value


def _rail(value: Any) -> Any:
    """Judge what a client measured of a rail in each direction, or at which port of it a server listens."""
    values.either(dict)(value)
    for one in [value[way] for way in ("forward", "reverse") if way in value] or [value]:
        _speed(one)
    return value


def _mark(value: Any) -> Any:
    """Judge the path of the file by which a node shows which directory it has; see environments/sharing.py."""
    if not re.fullmatch(r"/.*/\.shared-[a-z0-9_]+\.[^/]+", values.text(4096)(value)):
        raise Unfit("the path of a file that marks a directory")
    return value


_SYSTEM = values.fields(family=values.text(), id=values.text(), version=values.text())
# What a node may say at a path; any other fact or result is bounded in size and depth, see values.plain.
VALIDATORS: dict[str, Validator] = {
    f"{FACTS}.architecture": values.text(),
    f"{FACTS}.default_ipv4.address": values.address,
    f"{FACTS}.distribution": values.text(),
    f"{FACTS}.distribution_version": values.text(),
    f"{FACTS}.gpu_firewall": values.document(FirewallNode),
    f"{FACTS}.gpu_nccl": values.document(NcclNode),
    f"{FACTS}.gpu_node": values.document(GpuNode),
    f"{FACTS}.gpu_node.driver": values.document(MeasuredDriver),
    f"{FACTS}.gpu_node.fabric.domain": values.text(),
    f"{FACTS}.gpu_node.gpus": values.listing(values.document(Gpu)),
    f"{FACTS}.gpu_node_state": values.document(Observed),
    f"{FACTS}.gpu_node_state.fips": values.flag,
    f"{FACTS}.gpu_node_state.records": values.listing(values.text()),
    f"{FACTS}.gpu_pcie": values.document(PcieNode),
    f"{FACTS}.gpu_qos": values.document(QosNode),
    f"{FACTS}.gpu_rdma": values.document(RdmaNode),
    f"{FACTS}.gpu_scratch": values.document(ScratchNode),
    f"{FACTS}.gpu_slurm": values.document(SlurmNode),
    f"{FACTS}.gpu_stack": values.document(Stack),
    f"{FACTS}.gpu_stack.dcgm": values.fields(version=values.version),
    f"{FACTS}.gpu_stack.gpus": values.either(list),
    f"{FACTS}.gpu_stack.os": _SYSTEM,
    f"{FACTS}.gpu_stack.repository": values.either(dict),
    f"{FACTS}.gpu_tuning": values.document(TunedNode),
    f"{FACTS}.hostname": values.text(),
    f"{FACTS}.nodename": values.text(),
    f"{FACTS}.os_family": values.text(),
    **{f"{FACTS}.ssh_host_key_{kind}_public": values.text(16_384) for kind in ("ed25519", "ecdsa", "rsa")},
    **{f"{FACTS}.ssh_host_key_{kind}_public_keytype": values.text() for kind in ("ed25519", "ecdsa", "rsa")},
    "__cluster_ssh_keys.next_public_key": values.either(str),
    "__cluster_ssh_keys.public_key": values.either(str),
    "__cluster_ssh_keys.record.text": values.file_content,
    "__cluster_ssh_keys.record.time": values.number,
    "__cluster_ssh_keys.rotated": values.flag,
    "__frameworks_marker.path": _mark,
    "__frameworks_seen_markers.stdout_lines": values.listing(values.text(4096), 10_000),
    "__nvidia_driver_asks": values.flag,
    "__nvidia_driver_fetched.dest": values.text(4096),
    "__stack_reached.failed": values.flag,
    "__stack_reached.msg": values.either(str),
    "__stack_reached.unreachable": values.flag,
    "__stack_root.rc": values.number,
    "__stack_root.unreachable": values.flag,
    "__verify_gpu_compute": values.flag,
    "__verify_health": values.either(dict),
    "__verify_probe.node_probe": values.document(Probe),
    "__verify_server.rails": values.mapping(_speed),
    "__verify_speeds": values.listing(values.fields(bandwidth=values.mapping(_speed), rails=values.mapping(_rail))),
}
# An address that cannot be used does no harm where a user's variable takes its place.
SUPERSEDED = {f"{FACTS}.default_ipv4.address": "gpu_cluster_address"}
# What is not shown, even in part: the user of a node could make these files links to any other.
_NOT_SHOWN = "__cluster_ssh_keys."


@dataclass(frozen=True)
class Told:
    """Answers of nodes: {node: the values that were asked for, in the shape of its variables}; those with a problem are not among them."""

    values: dict[str, dict[str, Any]]
    problems: tuple[Problem, ...] = ()


def told(hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]) -> Told:
    """Return the values of these nodes at these paths, such as ansible_facts.gpu_node.nics; what a node does not say is left out."""
    wanted, found, problems = [*dict.fromkeys(paths)], {}, []
    for name in dict.fromkeys(names):
        given, wrong = _admitted(name, hostvars[name], wanted)
        problems += wrong
        if not wrong:
            found[name] = given
    return Told(found, tuple(problems))


def fitting(
    hosts: Mapping[str, Mapping[str, Any]], paths: Iterable[str]
) -> tuple[dict[str, Mapping[str, Any]], list[Problem]]:
    """Return the hosts whose values at these paths fit, with all their variables, and the problems of the others.

    For what depends on more of a user's variables than can be listed; of what a node says, only these paths may be read.
    """
    paths = [*paths]
    wrong = {name: misfits(name, variables, paths) for name, variables in hosts.items()}
    fit = {name: variables for name, variables in hosts.items() if not wrong[name]}
    return fit, [problem for found in wrong.values() for problem in found]


def misfits(name: str, variables: Mapping[str, Any], paths: Iterable[str]) -> list[Problem]:
    """Return the problems of a node's values at these paths that do not fit."""
    return _admitted(name, variables, [*paths])[1]


def unfit(name: str, path: str, value: object, expected: str) -> Problem:
    """Return the problem of a node whose value at a path does not fit."""
    shown = "not shown here" if path.startswith(_NOT_SHOWN) else in_short(value)
    return Problem("unfit_answer", name, {"place": path, "shown": shown, "expected": expected})


def in_short(value: object) -> str:
    """Return a value in a few harmless characters, whatever its size."""
    if isinstance(value, str):
        return f"'{ascii(value[:60])[1:-1]}{'…' if len(value) > 60 else ''}'"
    if isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**18) or value is None:
        return str(value)
    words = {int: "a huge number", list: "a list", tuple: "a list", dict: "a mapping"}
    return next((word for kind, word in words.items() if isinstance(value, kind)), "something else")


def _admitted(name: str, variables: Mapping[str, Any], paths: list[str]) -> tuple[dict[str, Any], list[Problem]]:
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            value = _at(variables, path)
            if value is not None:
                _put(found, path.split("."), _fit(path, value))
        except _Misplaced as error:
            problems.append(unfit(name, error.path, error.value, "a mapping"))
        except Unfit as error:
            if not (values.is_ip(value) and variables.get(SUPERSEDED.get(path, ""))):
                problems.append(unfit(name, path, value, error.expected))
    return found, list({(one.subject, one.detail["place"]): one for one in problems}.values())


def _fit(path: str, value: Any) -> Any:
    if is_of_user(path):
        return value
    return VALIDATORS.get(path, values.plain)(value)


def is_of_user(path: str) -> bool:
    """Return True if a path is of a variable that the inventory sets: no fact, and no result that a role registered."""
    return not path.startswith((f"{FACTS}.", "__")) and path != FACTS


class _Misplaced(ValueError):
    """Something else than a mapping on the way to a value."""

    def __init__(self, path: str, value: object) -> None:
        super().__init__(path)
        self.path, self.value = path, value


def _at(variables: Mapping[str, Any], path: str) -> Any:
    value: Any = variables
    names = path.split(".")
    for place, name in enumerate(names):
        if value is None:
            return None
        if not isinstance(value, Mapping):
            if is_of_user(path):
                return None
            raise _Misplaced(".".join(names[:place]), value)
        value = value.get(name)
    return value


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
