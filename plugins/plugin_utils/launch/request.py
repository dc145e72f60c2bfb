# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the request for a run: nodes, addresses, numbers, and the archive for the nodes."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...module_utils.training.states import RUN_ID
from ..cluster.address import READS, address_problems, cluster_address, is_address, neighbours
from ..documents.door import FACTS, told
from ..documents.gpu_node import Gpu
from ..documents.parsing import parse
from ..problems.problem import Problem, ProblemError, refuse
from ..subjects.slurm.request import is_node_name
from .board import has_posted
from .launchers.table import LAUNCHERS

NODE_FILES = Path(__file__).parent / "node"
SHORTEST_LEASE = 20  # seconds
_LEAST = {"max_restarts": 0, "timeout": 0, "start_timeout": 1, "stall_timeout": 0, "tail_lines": 0}


def select_nodes(available: Sequence[str], wanted: Any, variable: str = "train_nodes") -> list[str]:
    """Return the nodes that train, in the order of AVAILABLE or as named.

    WANTED, the value of VARIABLE: nothing (all), a number, a list of names, or either as text ("2", "gpu-1,gpu-2"); raises ProblemError.
    """
    if not available:
        raise ProblemError(Problem("no_training_nodes", "gpu_nodes"))
    wanted = wanted.strip() if isinstance(wanted, str) else wanted
    if wanted is None or wanted == "" or wanted == []:
        return list(available)
    if isinstance(wanted, str):
        wanted = int(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else _names(wanted) or [wanted]
    if not isinstance(wanted, (list, tuple)):
        return _first(available, wanted, variable)
    unknown = [str(name) for name in wanted if name not in available]
    if unknown:
        raise ProblemError(Problem("training_unknown", variable, {"unknown": unknown, "available": list(available)}))
    return [str(name) for name in dict.fromkeys(wanted)]


def plan_request(
    available: Sequence[str],
    *,
    nodes: object,
    script: str,
    directories: Sequence[str],
    forks: int,
    playing: Sequence[str] | None = None,
    files: Sequence[str] | str = (),
) -> dict[str, Any]:
    """Return {nodes, script, files}: who trains what; touch no node; raise ProblemError where no node can.

    available: the nodes there are; playing: those that take part in the play, all of them if None
    """
    selected = select_nodes(available, nodes)
    path = find_file(script, directories, "train_script")
    if not path.is_file():
        raise ProblemError(Problem("script_not_file", str(path)))
    beside = [str(find_file(name, directories, "train_files")) for name in _names(files)]
    check_play(selected, available if playing is None else playing, int(forks))
    return {"nodes": selected, "script": str(path), "files": beside}


def _names(value: Sequence[str] | str) -> list[str]:
    """Return names given as a list, or as one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    return [str(part).strip() for part in parts if str(part).strip()]


def find_file(name: str, directories: Sequence[str], variable: str) -> Path:
    """Return the absolute path of NAME, looked for in DIRECTORIES when it is relative; raise ProblemError."""
    name = str(name)  # YAML reads an empty value as null
    candidates = [Path(directory) / Path(name).expanduser() for directory in directories]
    for path in candidates:
        # Path.exists raises OSError where a directory may not be searched or a name is too long.
        if os.path.exists(path):  # noqa: PTH110
            return path.resolve()
    places = list(dict.fromkeys(str(path.parent.resolve()) for path in candidates))
    raise ProblemError(Problem("missing_file", variable, {"name": name, "directories": places}))


def script_arguments(value: Any) -> list[str]:
    """Return arguments given as a list, or as one text that is split as a shell does; raise ProblemError."""
    if isinstance(value, (list, tuple)):
        return [str(part) for part in value]
    if not isinstance(value, str):
        raise ProblemError(Problem("wrong_arguments", str(value), {"error": "they are neither a list nor a text"}))
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ProblemError(Problem("wrong_arguments", value, {"error": str(error)})) from error


def _first(available: Sequence[str], count: Any, variable: str) -> list[str]:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= len(available):
        detail = {"variable": variable, "available": len(available)}
        raise ProblemError(Problem("training_count", str(count), detail))
    return list(available[:count])


def check_play(nodes: Sequence[str], playing: Sequence[str], forks: int, variable: str = "train_nodes") -> None:
    """Refuse a play in which the nodes of the run would not all run at the same time; raise ProblemError."""
    absent = [name for name in nodes if name not in playing]
    if absent:
        raise ProblemError(Problem("training_absent", variable, {"nodes": absent}))
    if forks < len(nodes):
        raise ProblemError(Problem("too_few_forks", "forks", {"nodes": len(nodes), "forks": forks}))


def environment_python(environment: str) -> str:
    """Return the interpreter of an environment given by name or by absolute path."""
    root = environment if environment.startswith("/") else f"/opt/allreduce/envs/{environment}"
    return f"{root.rstrip('/')}/bin/python"


def least_nodes(args: Mapping[str, Any], count: int) -> int:
    """Return with how many of COUNT nodes a run may go on, all of them for 0; raise ProblemError where it could not."""
    launcher, least = args["launcher"], args["min_nodes"]
    if launcher not in LAUNCHERS:
        raise ProblemError(Problem("unknown_launcher", str(launcher), {"choices": list(LAUNCHERS)}))
    elastic = LAUNCHERS[launcher].elastic
    if elastic and count < 2:
        raise ProblemError(Problem("elastic_alone", launcher, {"nodes": count}))
    if elastic and args["max_restarts"] < 1:
        raise ProblemError(Problem("elastic_without_restarts", str(args["max_restarts"])))
    if least == 0:
        return count
    if not 1 <= least <= count:
        raise ProblemError(Problem("wrong_min_nodes", str(least), {"nodes": count}))
    if least < count and not elastic:
        raise ProblemError(Problem("min_nodes_unused", str(least), {"launcher": launcher}))
    return least


def check_numbers(args: Mapping[str, Any]) -> None:
    """Refuse numbers with which a run could not work; raise ProblemError."""
    nproc = args["nproc_per_node"]
    if nproc != "auto" and not re.fullmatch("0*[1-9][0-9]{0,8}", nproc):
        raise ProblemError(Problem("wrong_nproc", nproc))
    if not 1 <= args["port"] <= 65535:
        raise ProblemError(Problem("wrong_port", str(args["port"])))
    for name, least in _LEAST.items():
        if args.get(name, least) < least:
            raise ProblemError(Problem("low_number", name, {"value": args[name], "least": least}))
    if not 0 <= args.get("watch_interval", 0) < float("inf"):  # false for NaN
        raise ProblemError(Problem("wrong_watch_interval", f"{args['watch_interval']:g}"))
    if args["lease"] < SHORTEST_LEASE:
        raise ProblemError(Problem("short_lease", str(args["lease"]), {"least": SHORTEST_LEASE}))


def check_run(run_id: str, directory: str, node: str) -> None:
    """Refuse a name of a run that is none, or that has been used: its board would still have the former outcomes. Raise ProblemError."""
    if not RUN_ID.match(run_id):
        raise ProblemError(Problem("wrong_run_id", run_id))
    if has_posted(Path(directory) / run_id, node):
        raise ProblemError(Problem("used_run_id", run_id, {"directory": directory}))


def check_variables(variables: Mapping[str, Any]) -> None:
    """Refuse what no process can have in its environment; raise ProblemError."""
    for name, value in variables.items():
        if not re.fullmatch(r"[^=\0]+", str(name)) or "\0" in str(value):
            raise ProblemError(Problem("wrong_environment_variable", str(name)))


def node_addresses(nodes: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster address of each node, when each has one of its own; raise ProblemError."""
    said = neighbours(hostvars, nodes, READS)
    refuse(said.problems)
    addresses = {node: cluster_address(variables) for node, variables in said.values.items()}
    refuse(address_problems(addresses))
    return {node: address for node, address in addresses.items() if address}


def scheduled(nodes: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], int]:
    """Return Slurm's names of the nodes, and how many GPUs, or MIG instances, it can give on each; raise ProblemError."""
    said = told(hostvars, nodes, ["slurm_node_name", f"{FACTS}.gpu_node.gpus"])
    refuse(said.problems)
    names, counts = [], {}
    for node, values in said.values.items():
        name = str(values.get("slurm_node_name") or node.partition(".")[0])
        if not is_node_name(name):
            raise ProblemError(Problem("unfit_node_name", node, {"name": name}))
        names.append(name)
        gpus = [parse(Gpu, one) for one in values.get(FACTS, {}).get("gpu_node", {}).get("gpus") or ()]
        counts[node] = sum(len(gpu.mig.instances) if gpu.mig.current else 1 for gpu in gpus)
    if len(set(counts.values())) > 1:
        raise ProblemError(Problem("uneven_gpus", nodes[0], {"counts": counts}))
    return tuple(names), counts[nodes[0]]


def other_addresses(nodes: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the IPv4 addresses that facts tell of nodes: also those of bridges, which lead to the node itself, and of other networks."""
    said = told(hostvars, nodes, [f"{FACTS}.all_ipv4_addresses"]).values
    known = [(said.get(node) or {}).get(FACTS, {}).get("all_ipv4_addresses") for node in nodes]
    return frozenset(address for some in known if isinstance(some, list) for address in some if _is_ipv4(address))


def _is_ipv4(value: object) -> bool:
    return isinstance(value, str) and is_address(value) and ":" not in value


def archive(launch: Mapping, programs: Sequence[str] = (), work: Sequence[Path] = ()) -> bytes:
    """Return the tar.gz that module training_unit unpacks into the run's directory; raise ProblemError.

    LAUNCH is what agent.py runs: engine, arguments, python, script, args, variables, nproc_per_node, watch_interval, run_id. It travels
    as a file, since a module's arguments appear in the node's log, and the variables may hold secrets. PROGRAMS are files of
    launch/node; WORK are script and files of the user.
    """
    packed = io.BytesIO()
    paths = list({(path.name, path.resolve()): path for path in work}.values())
    names = Counter(path.name for path in paths)
    # With dereference, tarfile packs a file that has two names twice, and not the second time as a link.
    with tarfile.open(fileobj=packed, mode="w:gz", dereference=True) as tar:
        for name in programs:
            _add(tar, NODE_FILES / name, name)
        for path in paths:
            if not path.exists():
                raise ProblemError(Problem("file_absent", str(path)))
            if names[path.name] > 1:
                same = [str(one) for one in paths if one.name == path.name]
                raise ProblemError(Problem("same_file_name", path.name, {"paths": same}))
            _add(tar, path.resolve(), f"work/{path.name}")
        data = json.dumps(launch).encode()
        member = tarfile.TarInfo("launch.json")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file or a directory without what Python leaves behind; raise ProblemError for what the node would not take."""
    if path.name in ("__pycache__", ".git"):
        return
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        raise ProblemError(Problem("not_plain_file", str(path)))
    try:
        tar.add(path, name, recursive=False, filter=_anonymous)
        below = sorted(path.iterdir()) if path.is_dir() else []
    except OSError as error:
        raise ProblemError(Problem("file_unreadable", str(path), {"error": error.strerror})) from error
    for one in below:
        _add(tar, one, f"{name}/{one.name}")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Drop the owner, which means nothing on the node."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
