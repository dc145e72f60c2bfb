# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections of allreduce-run: each node's serve.py, as a child on this node and through ssh on the others.

A node may say anything: what its shell prints around the messages of serve.py is left out, none of it is kept but a sample, no line may
be endless, and no node may be silent for ever.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).absolute().parent
SSH = [
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
]
# Seconds until the first message, to which those are added in which the slowest link takes the script, and between two messages:
# serve.py sends one every few seconds.
HELLO, SILENCE, SLOWEST = 60.0, 120.0, 1_000_000  # and bytes per second
GRACE = 10.0  # seconds for the process to end once nothing is expected of it any more
NOISE = 1 << 16  # bytes that a node may print before its first message
LINE = 1 << 20  # bytes of a message; the longest one has the last lines of all ranks of a node
WAITING = 64  # messages of all nodes that wait to be shown
SAMPLE = 200  # characters of output that is not a message
# Terminal sequences, and control characters other than tab, newline and carriage return, which a progress bar needs.
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Broken(Exception):
    """The reason why a node is given up; a clause."""


class Node:
    """The connection to one node; what it says goes into a queue as (name, message), at its end one of kind gone."""

    def __init__(self, name: str, address: str, first: bytes, messages: queue.Queue):
        self.name, self.messages = name, messages
        program = [sys.executable, str(HERE / "serve.py")]
        argv = program if is_own(address) else [*SSH, address, *program]
        # Ctrl-C in the terminal is for this program only, which then ends them in order.
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.stdin, self.stdout, self.stderr = pipes(self.process)
        self.asked = time.time()
        self.sample = self.said = ""  # of output that is not a message; the last line of its errors
        self._outbox: queue.SimpleQueue = queue.SimpleQueue()
        self._patience = HELLO + len(first) / SLOWEST
        self._until = time.monotonic() + self._patience
        # Each in its own time: a node that takes nothing delays no other.
        self.write(first)
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()
        for work in (self._send, self._listen):
            threading.Thread(target=work, daemon=True).start()

    def write(self, data: bytes) -> None:
        """Send something; a node that is gone says so itself."""
        self._outbox.put(data)

    def stop(self) -> None:
        """End the node's part of the run."""
        self._outbox.put(None)

    def close(self, until: float) -> None:
        """Wait for the end of the process, and kill its group where that does not come in time."""
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _send(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (data := self._outbox.get()) is not None:
                self.stdin.write(data)
                self.stdin.flush()
        with contextlib.suppress(OSError, ValueError):
            self.stdin.close()

    def _listen(self) -> None:
        try:
            for message in self._messages():
                self.messages.put((self.name, message))
            self._errors.join(1.0)  # what a shell has left in the background may keep them open
            why = self.said or f"status {self.process.wait(GRACE)}"
        except Broken as error:
            why = str(error)
        except subprocess.TimeoutExpired:
            why = "it closed its output"
        hint = f"; it has also printed {self.sample!r}: look at ~/.bashrc there" if self.sample else ""
        self.messages.put((self.name, {"kind": "gone", "why": why + hint}))

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages of serve.py until the end; raise Broken."""
        noise, is_ready = 0, False
        for line in lines(self._chunks()):
            message = read_message(line)
            is_ready = is_ready or bool(message and message["kind"] == "ready")
            if message and is_ready:
                noise, self._patience = 0, SILENCE
                if message["kind"] != "alive":
                    yield message
                # Only now: the receiver of the message may have taken long.
                self._until = time.monotonic() + SILENCE
                continue
            noise += len(line) + 1
            self.sample = self.sample or plain(line[:SAMPLE].decode(errors="replace")).strip()
            if noise > NOISE:
                raise Broken(f"it prints more than {NOISE >> 10} KiB that are no messages of allreduce-run")

    def _chunks(self) -> Iterator[bytes]:
        """Yield the output of the process; raise Broken when nothing of it is a message in time."""
        out = self.stdout.fileno()
        ready = select.poll()
        ready.register(out, select.POLLIN)
        while ready.poll(max(0.0, self._until - time.monotonic()) * 1000):
            if not (data := os.read(out, NOISE)):
                return
            yield data
        raise Broken(f"it has said nothing for {self._patience:.0f} s")

    def _read_errors(self) -> None:
        """Keep the last line of the process' errors."""
        errors = b""
        while data := os.read(self.stderr.fileno(), NOISE):
            errors = (errors + data)[-NOISE:]
            self.said = last_line(errors)


def lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends; raise Broken for one that does not end."""
    rest: list[bytes] = []
    length = 0
    for chunk in chunks:
        first, *more = chunk.split(b"\n")
        rest.append(first)
        length += len(first)
        if length > LINE:
            raise Broken(f"it prints a line of more than {LINE >> 20} MiB")
        if more:
            yield b"".join(rest)
            yield from more[:-1]
            rest, length = [more[-1]], len(more[-1])
    if length:
        yield b"".join(rest)


def read_message(line: bytes) -> dict[str, Any] | None:
    """Return a message of serve.py with its texts made harmless; None for anything else."""
    try:
        message = harmless(json.loads(line))
        return message if SHAPES[message["kind"]](message) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def harmless(value: Any) -> Any:
    """Return plain values with all their texts as a terminal may show them."""
    if isinstance(value, dict):
        return {plain(key): harmless(one) for key, one in value.items()}
    if isinstance(value, list):
        return [harmless(one) for one in value]
    return plain(value) if isinstance(value, str) else value


def plain(text: str) -> str:
    """Return a text without what would command a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _SEQUENCE.sub("", text))


def last_line(data: bytes) -> str:
    """Return the last line that says something."""
    found = [line for line in plain(data.decode(errors="replace")).splitlines() if line.strip()]
    return found[-1].strip()[:SAMPLE] if found else ""


def _is_number(value: object) -> bool:
    """Return True if it may be a time, a rank or an exit code; neither infinite numbers nor NaN are less than anything."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_failure(value: Any) -> bool:
    numbers = all(isinstance(value[name], int) and _is_number(value[name]) for name in ("rank", "exit_code"))
    return numbers and _is_number(value["time"]) and _is_texts(value["tail"])


def _is_end(message: dict[str, Any]) -> bool:
    failures = isinstance(message["failures"], list) and all(map(_is_failure, message["failures"]))
    return failures and isinstance(message["error"], (str, type(None))) and _is_texts(message["log"])


# What each kind of message has.
SHAPES = {
    "alive": lambda message: True,
    "ready": lambda message: _is_number(message["now"]) and _is_texts([*message["versions"].values()]),
    "output": lambda message: isinstance(message["text"], str),
    "end": _is_end,
}


def pipes(process: subprocess.Popen) -> tuple[IO[bytes], ...]:
    """Return the ends of a process' input, output and errors that are on this side."""
    return tuple(one for one in (process.stdin, process.stdout, process.stderr) if one)


def is_own(address: str) -> bool:
    """Return True if an address is one of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
