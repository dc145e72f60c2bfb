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

NODE_FILES = Path(__file__).parent / "node"


class RequestError(Exception):
    """One sentence: what is wrong, the value, what to set instead."""


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
    """The nodes that train, in the order of AVAILABLE or as named.

    WANTED: nothing (all), a number, a list of names, or either as text ("2", "gpu-1,gpu-2"); raises RequestError.
    """
    if not available:
        raise RequestError("Group gpu_nodes has no hosts; add the nodes to train on to it in the inventory.")
    if wanted is None or wanted == "" or wanted == []:
        return list(available)
    if isinstance(wanted, str) and not wanted.strip().isdigit():
        wanted = [name.strip() for name in wanted.split(",") if name.strip()]
    if isinstance(wanted, (str, int)):
        return _first(available, int(wanted))
    unknown = [str(name) for name in wanted if name not in available]
    if unknown:
        raise RequestError(
            f"train_nodes names {', '.join(unknown)}, not in group gpu_nodes; choose from {', '.join(available)}."
        )
    return [str(name) for name in dict.fromkeys(wanted)]


def plan_request(
    available: Sequence[str],
    *,
    nodes: object,
    script: str,
    directories: Sequence[str],
    forks: int,
    files: Sequence[str] = (),
) -> dict:
    """{nodes, script, files, refusal}: who trains what, or in one sentence why nobody can; touches no node."""
    try:
        selected = select_nodes(available, nodes)
        path = find_file(script, directories, "train_script")
        if not path.is_file():
            raise RequestError(f"The training script {path} is no file; set train_script to one.")
        beside = [str(find_file(name, directories, "train_files")) for name in files]
        check_play(selected, available, int(forks))
    except RequestError as error:
        return {"nodes": [], "script": "", "files": [], "refusal": str(error)}
    return {"nodes": selected, "script": str(path), "files": beside, "refusal": None}


def find_file(name: str, directories: Sequence[str], variable: str) -> Path:
    """Absolute path of NAME, looked for in DIRECTORIES when it is relative; raises RequestError."""
    candidates = [Path(directory) / Path(name).expanduser() for directory in directories]
    for path in candidates:
        if path.exists():
            return path.resolve()
    places = ", ".join(dict.fromkeys(str(path.parent.resolve()) for path in candidates))
    raise RequestError(f"{variable} names {name}, which does not exist in {places}; set it to what does.")


def script_arguments(value: Any) -> list[str]:
    """Arguments given as a list, or as one text that is split as a shell does; raises RequestError."""
    if not isinstance(value, str):
        return [str(part) for part in value]
    try:
        return shlex.split(value)
    except ValueError as error:
        raise RequestError(f"The script's arguments {value!r} cannot be split ({error}); give a list.") from error


def _first(available: Sequence[str], count: int) -> list[str]:
    if not 1 <= count <= len(available):
        raise RequestError(
            f"train_nodes is {count} but group gpu_nodes has {len(available)} hosts; "
            f"set a number from 1 to {len(available)}, or names."
        )
    return list(available[:count])


def check_play(nodes: Sequence[str], playing: Sequence[str], forks: int) -> None:
    """Refuse a play in which the nodes of the run would not all run at the same time; raises RequestError."""
    absent = [name for name in nodes if name not in playing]
    if absent:
        raise RequestError(
            f"{', '.join(absent)} should train but does not take part in this play (any more); "
            "remove the limit, serial or failure that keeps it out, or choose other nodes."
        )
    if forks < len(nodes):
        raise RequestError(
            f"Training on {len(nodes)} nodes needs as many forks, but Ansible runs with {forks}; "
            f"add '-f {len(nodes)}' to the command line."
        )


def environment_python(environment: str) -> str:
    """Interpreter of an environment given by name or by absolute path."""
    root = environment if environment.startswith("/") else f"/opt/allreduce/envs/{environment}"
    return f"{root.rstrip('/')}/bin/python"


def check_numbers(args: Mapping) -> None:
    """Refuse numbers with which a run could not work; raises RequestError."""
    nproc = args["nproc_per_node"]
    if nproc != "auto" and not (nproc.isdigit() and int(nproc) > 0):
        raise RequestError(f"nproc_per_node is {nproc!r}; set it to auto or to a number from 1.")
    if not 1 <= args["port"] <= 65535:
        raise RequestError(f"port is {args['port']}; set it to a number from 1 to 65535.")
    if args["lease"] < 20:
        raise RequestError(f"lease is {args['lease']} s; set it to 20 s or more.")


def check_addresses(addresses: Mapping[str, str | None]) -> dict[str, str]:
    """The addresses, when each node has one of its own; raises RequestError."""
    owner: dict[str, str] = {}
    for node, address in addresses.items():
        if not address:
            raise RequestError(f"{node} has no default route for a cluster address; set gpu_cluster_address.")
        if address in owner:
            raise RequestError(
                f"{owner[address]} and {node} have the same cluster address {address}; set gpu_cluster_address on both "
                "to addresses at which they reach each other."
            )
        owner[address] = node
    return {node: address for address, node in owner.items()}


def torchrun_arguments(place: Place, run_id: str, directory: str, max_restarts: int) -> list[str]:
    """torchrun's own arguments on one node, without the number of ranks, which is measured there.

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
    """The user's variables as text, with what torchrun needs so that ranks can start again.

    The ranks' process group otherwise uses the rendezvous' own store, in which Gloo finds the addresses of the ranks
    that have ended: with torch 2.13 no restart across two nodes came up.
    """
    own = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if max_restarts else {}
    return {**own, **{name: str(value) for name, value in variables.items()}}


def archive(script: Path, files: Sequence[Path], launch: Mapping) -> bytes:
    """The tar.gz that module training_unit unpacks into the run's directory; raises RequestError.

    LAUNCH is what agent.py runs: python, torchrun, script, args, variables, nproc_per_node, run_id. It travels as a
    file, since a module's arguments appear in the node's log, and the variables may hold secrets.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("agent.py", "rank.py"):
            tar.add(NODE_FILES / name, arcname=name, filter=_plain)
        for path in dict.fromkeys([script, *files]):
            if not path.exists():
                raise RequestError(f"{path} does not exist on the controller; correct the list of files.")
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
