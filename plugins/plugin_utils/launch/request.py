# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run is asked to be: nodes, addresses, torchrun's arguments, the archive that travels to the nodes."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cluster.address import address_problems, cluster_address
from ..preflight.problem import Problem, ProblemError, refuse

NODE_FILES = Path(__file__).parent / "node"
SHORTEST_LEASE = 20  # seconds


@dataclass(frozen=True)
class Place:
    """Where one node stands in a run. The first of NODES is the rendezvous."""

    node: str
    nodes: tuple[str, ...]
    addresses: Mapping[str, str]
    port: int

    @property
    def address(self) -> str:
        return self.addresses[self.node]

    @property
    def is_first(self) -> bool:
        return self.node == self.nodes[0]

    @property
    def rendezvous(self) -> str:
        host = self.addresses[self.nodes[0]]
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def select_nodes(available: Sequence[str], wanted: Any) -> list[str]:
    """Return the nodes that train, in the order of AVAILABLE or as named.

    WANTED: nothing (all), a number, a list of names, or either as text ("2", "gpu-1,gpu-2"); raises ProblemError.
    """
    if not available:
        raise ProblemError(Problem("no_training_nodes", "gpu_nodes"))
    if wanted is None or wanted == "" or wanted == []:
        return list(available)
    if isinstance(wanted, str) and not wanted.strip().isdigit():
        wanted = _names(wanted)
    if isinstance(wanted, (str, int)):
        return _first(available, int(wanted))
    unknown = [str(name) for name in wanted if name not in available]
    if unknown:
        raise ProblemError(
            Problem("training_unknown", "train_nodes", {"unknown": unknown, "available": list(available)})
        )
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
    """Return {nodes, script, files}: who trains what; touch no node; raise ProblemError where nobody can.

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
    candidates = [Path(directory) / Path(name).expanduser() for directory in directories]
    for path in candidates:
        if path.exists():
            return path.resolve()
    places = list(dict.fromkeys(str(path.parent.resolve()) for path in candidates))
    raise ProblemError(Problem("missing_file", variable, {"name": name, "directories": places}))


def script_arguments(value: Any) -> list[str]:
    """Return arguments given as a list, or as one text that is split as a shell does; raise ProblemError."""
    if not isinstance(value, str):
        return [str(part) for part in value]
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ProblemError(Problem("wrong_arguments", value, {"error": str(error)})) from error


def _first(available: Sequence[str], count: int) -> list[str]:
    if not 1 <= count <= len(available):
        raise ProblemError(Problem("training_count", str(count), {"available": len(available)}))
    return list(available[:count])


def check_play(nodes: Sequence[str], playing: Sequence[str], forks: int) -> None:
    """Refuse a play in which the nodes of the run would not all run at the same time; raise ProblemError."""
    absent = [name for name in nodes if name not in playing]
    if absent:
        raise ProblemError(Problem("training_absent", "train_nodes", {"nodes": absent}))
    if forks < len(nodes):
        raise ProblemError(Problem("too_few_forks", "forks", {"nodes": len(nodes), "forks": forks}))


def environment_python(environment: str) -> str:
    """Return the interpreter of an environment given by name or by absolute path."""
    root = environment if environment.startswith("/") else f"/opt/allreduce/envs/{environment}"
    return f"{root.rstrip('/')}/bin/python"


def check_numbers(args: Mapping[str, Any]) -> None:
    """Refuse numbers with which a run could not work; raise ProblemError."""
    nproc = args["nproc_per_node"]
    if nproc != "auto" and not (nproc.isdigit() and int(nproc) > 0):
        raise ProblemError(Problem("wrong_nproc", nproc))
    if not 1 <= args["port"] <= 65535:
        raise ProblemError(Problem("wrong_port", str(args["port"])))
    if args["lease"] < SHORTEST_LEASE:
        raise ProblemError(Problem("short_lease", str(args["lease"]), {"least": SHORTEST_LEASE}))


def node_addresses(nodes: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster address of each node, when each has one of its own; raise ProblemError."""
    addresses = {node: cluster_address(hostvars[node]) for node in nodes}
    refuse(address_problems(addresses))
    return {node: address for node, address in addresses.items() if address}


def torchrun_arguments(place: Place, run_id: str, directory: str, max_restarts: int) -> list[str]:
    """Return torchrun's own arguments on one node, without the number of ranks, which is measured there.

    * --local-addr: without it, nodes that cannot resolve each other's host names wait for each other for minutes.
    * is_host: torchrun otherwise guesses from host names which node listens; and with a guess it takes whatever
      already listens on a busy port for the rendezvous.
    """
    return [
        f"--nnodes={len(place.nodes)}",
        "--rdzv-backend=c10d",
        f"--rdzv-id={run_id}",
        f"--rdzv-endpoint={place.rendezvous}",
        f"--rdzv-conf=is_host={int(place.is_first)}",
        f"--local-addr={place.address}",
        f"--max-restarts={max_restarts}",
        f"--log-dir={directory}/logs/torchrun",
    ]


def script_variables(variables: Mapping[str, object], max_restarts: int) -> dict[str, str]:
    """Return the user's variables as text, with what torchrun needs so that ranks can start again.

    The ranks' process group otherwise uses the rendezvous' own store, in which Gloo finds the addresses of the ranks
    that have ended: with torch 2.13 no restart across two nodes came up.
    """
    own = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if max_restarts else {}
    return {**own, **{name: str(value) for name, value in variables.items()}}


def archive(script: Path, files: Sequence[Path], launch: Mapping) -> bytes:
    """Return the tar.gz that module training_unit unpacks into the run's directory; raise ProblemError.

    LAUNCH is what agent.py runs: python, torchrun, script, args, variables, nproc_per_node, run_id. It travels as a
    file, since a module's arguments appear in the node's log, and the variables may hold secrets.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("agent.py", "rank.py"):
            tar.add(NODE_FILES / name, arcname=name, filter=_plain)
        for path in dict.fromkeys([script, *files]):
            if not path.exists():
                raise ProblemError(Problem("file_absent", str(path)))
            tar.add(path, arcname=f"work/{path.name}", filter=_plain)
        data = json.dumps(launch).encode()
        member = tarfile.TarInfo("launch.json")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what Python leaves behind; drop the owner, which means nothing on the node."""
    if Path(member.name).name in ("__pycache__", ".git"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
