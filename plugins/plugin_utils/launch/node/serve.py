# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on each node of a run of allreduce-run, as its user: start the agent, tell how it goes, end it when no client listens any more.

On standard input come a line of JSON, {run_id, address, launch, bytes}, a tar archive of this size with script and files, and the line
"go"; then it stays open. When it ends, so does the node's part of the run. On standard output go lines of JSON, each with its kind:
ready (now, versions), alive, output (text), end (failures, error, log). A line is at most as long as connection.py takes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import platform
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

INSTALLED = Path(__file__).absolute().parent
RUNS = Path.home() / "allreduce-runs"
EVERY = 0.5  # seconds
PATIENCE = 15  # seconds between SIGTERM and SIGKILL: a checkpoint is written meanwhile
MOST, NOTE = 1 << 16, 1 << 20  # bytes of a log at once, and of what the agent leaves
LINES, WIDTH, FAILURES = 20, 500, 8  # of what is told at the end
BEAT = 5.0  # seconds between two signs of life
_SAYING = threading.Lock()


def main() -> int:
    """Do what run.py asks for on this node."""
    os.umask(0o077)
    header = json.loads(sys.stdin.buffer.readline())
    directory = prepare(header)
    say(kind="ready", now=time.time(), versions=versions())
    threading.Thread(target=beat, daemon=True).start()
    if sys.stdin.buffer.readline() != b"go\n":
        return 1
    closed = threading.Event()
    threading.Thread(target=wait_for_end, args=(closed,), daemon=True).start()
    watch(directory, header["run_id"], closed)
    return 0


def versions() -> dict[str, str]:
    """Return the versions of what is installed, without a package whose installation was cut off."""
    told = [one.metadata for one in importlib.metadata.distributions()]
    known = [one for one in told if one and one["Name"] and one["Version"]]
    return {**{one["Name"].lower(): one["Version"] for one in known}, "python": platform.python_version()}


def beat() -> None:
    """Give signs of life, until no client listens any more."""
    with contextlib.suppress(BrokenPipeError):
        while True:
            time.sleep(BEAT)
            say(kind="alive")


def wait_for_end(closed: threading.Event) -> None:
    """Note that no client listens any more."""
    sys.stdin.buffer.read()
    closed.set()


def prepare(header: dict) -> Path:
    """Make the run's directory as the agent wants it."""
    directory = RUNS / header["run_id"]
    for name in ("work", "logs"):
        (directory / name).mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read(header["bytes"]))) as tar:
        for member in tar:
            tar.extract(member, directory / "work", set_attrs=False)
    for name in ("agent.py", "rank.py", "watch.py"):
        (directory / name).symlink_to(INSTALLED / name)
    launch = header["launch"]
    launch["arguments"].append(f"--log-dir={directory}/logs/torchrun")
    launch["variables"] = {**interfaces(header["address"]), **launch["variables"]}
    (directory / "launch.json").write_text(json.dumps(launch), encoding="utf-8")
    return directory


def interfaces(address: str) -> dict[str, str]:
    """Return the variables that keep Gloo and NCCL to the interface with the cluster address."""
    asked = subprocess.run(["ip", "-json", "address", "show", "to", address], capture_output=True, check=False)
    links = json.loads(asked.stdout or b"[]") if asked.returncode == 0 else []
    # On loopback, which routing to the host puts an address on, libraries would reach their own node only.
    names = [link["ifname"] for link in links if link.get("addr_info") and link.get("link_type") != "loopback"]
    # NCCL takes names as prefixes unless they begin with "=".
    return {"GLOO_SOCKET_IFNAME": names[0], "NCCL_SOCKET_IFNAME": "=" + names[0]} if len(names) == 1 else {}


def watch(directory: Path, run_id: str, closed: threading.Event) -> None:
    """Run the agent to its end, or until no client listens."""
    logs = directory / "logs"
    agent = subprocess.Popen(
        [sys.executable, str(directory / "agent.py")], cwd=directory / "work", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    seen = 0
    try:
        while agent.poll() is None and not closed.wait(EVERY):
            seen += tell(logs, seen)
    except BrokenPipeError:
        closed.set()
    if closed.is_set():
        end(agent)
    kill_all(run_id)
    # Without a listener there is no message.
    with contextlib.suppress(BrokenPipeError):
        seen += tell(logs, seen)
        say(kind="end", **outcome(logs, agent.wait()))


def tell(logs: Path, seen: int) -> int:
    """Tell what rank 0 has printed since SEEN bytes, where it is on this node; returns how many bytes that were."""
    text = b""
    with contextlib.suppress(OSError), open_file(logs / "rank0.out") as log:
        log.seek(seen)
        text = log.read(MOST)
    if text:
        say(kind="output", text=text.decode(errors="replace"))
    return len(text)


def outcome(logs: Path, status: int) -> dict:
    """Return the end of the node's part: {failures: [...], error, log} with the last lines of each rank that failed, and of the agent."""
    found: dict = {"failures": [], "error": f"the agent ended with status {status} without a message that can be read"}
    try:
        with open_file(logs / "agent.json") as note:
            told = json.loads(note.read(NOTE))
        first = sorted(told["failures"], key=lambda one: one["time"])[:FAILURES]
        failures = [
            {**{name: one[name] for name in ("rank", "exit_code", "time")}, "tail": tails(logs, one["rank"])}
            for one in first
        ]
        found = {"failures": failures, "error": told["error"] and str(told["error"])[-WIDTH:]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # no message, or one of another writer
        pass
    return {**found, "log": tail(logs / "torchrun.log") if found["error"] else []}


def tails(logs: Path, rank: int) -> list[str]:
    """Return the last lines of a rank, of its errors if it wrote any."""
    return tail(logs / f"rank{rank:d}.err") or tail(logs / f"rank{rank:d}.out")


def tail(path: Path) -> list[str]:
    """Return the last lines of a log."""
    with contextlib.suppress(OSError), open_file(path) as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - MOST))
        return [line[-WIDTH:] for line in log.read(MOST).decode(errors="replace").splitlines()[-LINES:]]
    return []


def open_file(path: Path) -> io.FileIO:
    """Open a file of the logs; raise OSError for anything else, such as a pipe that may never be written to."""
    stream = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(f"{path} is not a file")
    return stream


def end(agent: subprocess.Popen) -> None:
    """Ask the agent to end; torchrun passes that on to the ranks."""
    agent.terminate()
    try:
        agent.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        agent.kill()
        agent.wait()


def kill_all(run_id: str) -> None:
    """Kill what is left of the run: its own processes have its name in their environment."""
    mark = f"ALLREDUCE_RUN_ID={run_id}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if int(place.name) != os.getpid() and mark in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)


def say(**message: object) -> None:
    """Tell run.py something."""
    with _SAYING:
        # The empty line ends what a shell may have printed without one.
        sys.stdout.write(f"\n{json.dumps(message)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
