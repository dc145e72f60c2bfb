# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""allreduce-run: train on several nodes from one of them, without Ansible.

    allreduce-run train.py --epochs 3                     # all nodes that the cluster has
    allreduce-run --nodes gpu-1,gpu-2 -x API_KEY train.py

Script and files go to each node, where torchrun starts the ranks; the nodes are reached with the keys of role cluster_ssh. What rank 0
prints is shown. When a rank fails, all others end, and the failure is shown with its last lines. Ctrl-C, a closed terminal or a lost
connection end the run on all nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import queue
import re
import signal
import sys
import tarfile
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

RECORD = Path("/etc/allreduce/nodes.json")  # of role cluster_ssh
# c10d leaves a node out whose last sign of life, one every 5 s, is 15 s old by the clock of the one that looks (PyTorch 2.13.0,
# dynamic_rendezvous.py: keep_alive_interval, keep_alive_max_attempt).
CLOCKS_APART = 10.0
WATCH_INTERVAL = 2.0  # seconds between two looks at each GPU, see watch.py
ENDING = 60.0  # seconds in which a node ends its part once it is asked to: serve.py's own patience, and the logs


def unlike(reference: Mapping[str, str], own: Mapping[str, str]) -> str:
    """Return the versions in OWN that are not those of the REFERENCE, as 'torch 2.12.1, not 2.13.0'; what only one has is its matter."""
    differing = [
        f"{name} {own[name]}, not {version}" for name, version in reference.items() if own.get(name, version) != version
    ]
    more = f" (and {len(differing) - 3} more)" if len(differing) > 3 else ""
    return "; ".join(sorted(differing)[:3]) + more


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Return the parsed arguments; end with a sentence where they are not valid."""
    parser = argparse.ArgumentParser(prog="allreduce-run", description="Train on several nodes, from one of them.")
    add = parser.add_argument
    add("--nodes", default="", help="names separated by commas, or how many (default: all of the cluster)")
    add("--nproc-per-node", default="auto", help="ranks on each node (default auto: one per GPU, or one)")
    add("--max-restarts", type=int, default=0, help="how often torchrun starts all ranks again (default 0)")
    add("--port", type=int, default=29500, help="of the rendezvous, on the first node (default 29500)")
    many: dict[str, Any] = {"action": "append", "default": []}
    add("--file", type=Path, help="file or directory to put next to the script; may be repeated", **many)
    add("-x", metavar="NAME", help="give the script this variable of your environment; may be repeated", **many)
    add("script", type=Path)
    add("args", nargs=argparse.REMAINDER, help="arguments of the script")
    asked = parser.parse_args(argv)
    for path in (asked.script, *asked.file):
        if not path.exists():
            parser.error(f"{path} does not exist")
    absent = [name for name in asked.x if name not in os.environ]
    if absent:
        parser.error(f"-x {absent[0]}: your environment has no such variable")
    if not re.fullmatch("auto|0*[1-9][0-9]{0,8}", asked.nproc_per_node):
        parser.error(f"--nproc-per-node is auto or a number of at least 1, not {asked.nproc_per_node}")
    if not 1 <= asked.port <= 65535:
        parser.error(f"--port is a number from 1 to 65535, not {asked.port}")
    if asked.max_restarts < 0:
        parser.error(f"--max-restarts is 0 or more, not {asked.max_restarts}")
    names: dict[str, Path] = {}
    for path in (asked.script, *asked.file):
        if names.setdefault(path.name, path.resolve()) != path.resolve():
            parser.error(f"two files would be {path.name} on the nodes; rename one of them")
    return asked


def choose(wanted: str, record: Path) -> dict[str, str]:
    """Return {name: address} of the nodes of the run; the first holds the rendezvous."""
    try:
        known = {one["name"]: one["address"] for one in json.loads(record.read_text(encoding="utf-8"))}
    except FileNotFoundError:
        sys.exit(
            f"allreduce-run: {record} is missing; role allreduce.gpu.cluster_ssh writes it and lets the nodes reach each other"
        )
    if not wanted:
        return known
    if re.fullmatch("[0-9]+", wanted):
        if not 1 <= int(wanted) <= len(known):
            sys.exit(f"allreduce-run: --nodes {wanted}, but the cluster has {len(known)}")
        return dict(list(known.items())[: int(wanted)])
    unknown = [name for name in wanted.split(",") if name not in known]
    if unknown:
        sys.exit(f"allreduce-run: there is no node {unknown[0]}; the cluster has {', '.join(known)}")
    return {name: known[name] for name in wanted.split(",")}


def header(asked: argparse.Namespace, run_id: str, nodes: dict[str, str], name: str, archive: bytes) -> bytes:
    """Return the first line for a node."""
    addresses = list(nodes.values())
    first, number = addresses[0], list(nodes).index(name)
    endpoint = f"[{first}]:{asked.port}" if ":" in first else f"{first}:{asked.port}"
    # launch/launchers/torchrun.py says why each of them.
    arguments = [
        f"--nnodes={len(nodes)}", f"--rdzv-conf=is_host={int(number == 0)}", "--rdzv-backend=c10d", f"--rdzv-id={run_id}",
        f"--rdzv-endpoint={endpoint}", f"--local-addr={nodes[name]}", f"--max-restarts={asked.max_restarts}",
    ]  # fmt: skip
    variables = {"ALLREDUCE_NODE_ADDRESSES": ",".join(addresses), "ALLREDUCE_NODE_NUMBER": str(number)}
    if asked.max_restarts:
        variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    launch = {
        "run_id": run_id, "python": sys.executable, "engine": "torchrun", "arguments": arguments, "min_nodes": len(nodes),
        "script": asked.script.name, "args": asked.args, "nproc_per_node": asked.nproc_per_node, "cpus": [],
        "watch_interval": WATCH_INTERVAL,
        "variables": {**variables, **{one: os.environ[one] for one in asked.x}},
    }  # fmt: skip
    return (
        json.dumps({"run_id": run_id, "address": nodes[name], "launch": launch, "bytes": len(archive)}).encode() + b"\n"
    )


class Run:
    """A run from its start to its end."""

    def __init__(self, asked: argparse.Namespace, nodes: dict[str, str], run_id: str):
        from connection import WAITING, Node  # next to this file on the nodes

        archive = pack([asked.script, *asked.file])
        self.messages: queue.Queue = queue.Queue(WAITING)
        self.nodes = {
            name: Node(name, address, header(asked, run_id, nodes, name, archive) + archive, self.messages)
            for name, address in nodes.items()
        }
        self.ends: dict[str, dict] = {}
        self.ahead: dict[str, tuple[float, float]] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.problem = ""
        self.until: float | None = None  # when every node has ended that was asked to

    def follow(self) -> None:
        """Show what rank 0 prints until every node has ended; stop all when one fails."""
        heard = {"ready": self._ready, "output": self._output, "end": self._end, "gone": self._gone}
        while left := [name for name in self.nodes if name not in self.ends]:
            with contextlib.suppress(queue.Empty):
                name, message = self.messages.get(timeout=1.0)
                heard[message["kind"]](name, message)
            if self.until and time.monotonic() > self.until:
                error = f"it did not end within {ENDING:.0f} s of being asked to"
                self.ends.update(
                    {name: {"failures": [], "error": error, "log": []} for name in left if name not in self.ends}
                )

    def close(self) -> None:
        """End what is left of the connections; say what nodes printed that is no message."""
        from connection import GRACE

        until = time.monotonic() + GRACE
        for name, node in self.nodes.items():
            node.stop()
            node.close(until)
            if node.sample:
                hint = "its ~/.bashrc should print in a terminal only"
                print(
                    f"allreduce-run: {name} has also printed {node.sample!r}, which was left out; {hint}",
                    file=sys.stderr,
                )

    @staticmethod
    def _output(_name: str, message: dict) -> None:
        sys.stdout.write(message["text"])
        sys.stdout.flush()

    def _end(self, name: str, message: dict) -> None:
        self.ends[name] = message
        if message["error"] or message["failures"]:
            self.stop()

    def _gone(self, name: str, message: dict) -> None:
        if name not in self.ends:
            what = "the connection has ended" if name in self.ahead else "it cannot be reached, or cannot begin"
            self._end(name, {"failures": [], "error": f"{what}: {message['why']}", "log": []})

    def stop(self, problem: str = "") -> None:
        """End the run on all nodes."""
        self.problem = self.problem or problem
        self.until = self.until or time.monotonic() + ENDING
        for node in self.nodes.values():
            node.stop()

    def _ready(self, name: str, message: dict) -> None:
        """Begin once all are ready, and agree."""
        if name in self.ahead:
            return
        node = self.nodes[name]
        self.ahead[name] = (message["now"] - time.time(), message["now"] - node.asked)
        self.versions[name] = message["versions"]
        if len(self.ahead) < len(self.nodes):
            return
        against = self._disagreement()
        if against:
            self.stop(against)
            return
        for one in self.nodes.values():
            one.write(b"go\n")

    def _disagreement(self) -> str:
        """Return the reason why nodes must not train with each other; empty where they may."""
        first = next(iter(self.nodes))
        least, most = self.ahead[first]
        apart = {other: max(its[0] - most, least - its[1]) for other, its in self.ahead.items()}
        worst = max(apart, key=lambda other: apart[other])
        if apart[worst] > CLOCKS_APART:
            seconds = int(apart[worst])
            return f"the clocks of {first} and {worst} are at least {seconds} s apart; let a time server set both"
        for other, versions in self.versions.items():
            differing = unlike(self.versions[first], versions)
            if differing:
                return f"the environment of {other} has {differing} as on {first}; both need the same"
        return ""

    def _offset(self, name: str) -> float:
        """Return the seconds by which a node's clock is certainly ahead, so that times of all nodes can be compared."""
        least, most = self.ahead[name]
        return 0.0 if least <= 0 <= most else (least + most) / 2

    def failure(self) -> list[str]:
        """Return the lines that say what failed first; none where all is well."""
        failures = [
            (one["time"] - self._offset(name), name, one) for name, end in self.ends.items() for one in end["failures"]
        ]
        if self.problem:
            return [self.problem]
        if failures:
            _time, name, first = min(failures, key=lambda one: one[0])
            how = f"exit code {first['exit_code']}" if first["exit_code"] >= 0 else f"signal {-first['exit_code']}"
            return [f"rank {first['rank']} on {name} ended with {how}", *first["tail"]]
        errors = [[f"{name}: {end['error']}", *end["log"]] for name, end in self.ends.items() if end["error"]]
        return errors[0] if errors else []


def pack(paths: list[Path]) -> bytes:
    """Return script and files as a tar archive."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in paths:
            tar.add(path.resolve(), path.name)
    return data.getvalue()


def main() -> int:
    """Run; the exit status is 0, 1 after a failure, 128 and the signal's number after a signal."""
    asked = parse_arguments(sys.argv[1:])
    nodes = choose(asked.nodes, RECORD)
    run_id = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S") + f"-{len(nodes)}n-{os.getpid()}"
    run = Run(asked, nodes, run_id)
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        received.append(number)
        run.stop("it was interrupted")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, note)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr] # a node may print what this terminal lacks
    run.follow()
    run.close()
    failure = run.failure()
    if failure:
        print(f"allreduce-run: run {run_id} failed: {failure[0]}", *failure[1:], sep="\n  ", file=sys.stderr)
    print(f"allreduce-run: logs are in ~/allreduce-runs/{run_id}/logs on each of {', '.join(nodes)}", file=sys.stderr)
    return 128 + received[0] if received else 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
