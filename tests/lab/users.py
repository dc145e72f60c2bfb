# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that people know, as the training user types them on nodes, and what these must print.

Each is typed in a login shell of the first node, in which the environment was activated; torchrun's on every node at once.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .podman import command as podman_command
from .podman import podman
from .progress import LabError

USER = "trainer"
HOME = f"/home/{USER}"
ENVIRONMENT = "/opt/allreduce/envs/main"
ACTIVATE = f". {ENVIRONMENT}/bin/activate"
LOAD = "module load allreduce/main"  # where the inventory has modulefiles
EPOCHS = 2
PORT = 29500
SECONDS = 900  # two processors and one disk read several GB of libraries for all ranks
# The last line of both examples.
LAST = re.compile(r"\bloss (\d+\.\d+) -> (\d+\.\d+)\b.*, (\d+) ranks?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Nodes:
    """Nodes by their names, and the ranks of each."""

    names: tuple[str, ...]
    ranks: int

    @property
    def total(self) -> int:
        return len(self.names) * self.ranks

    @property
    def slots(self) -> str:
        """As mpirun and horovodrun want them: `gpu-1:4,gpu-2:4`."""
        return ",".join(f"{name}:{self.ranks}" for name in self.names)


@dataclass(frozen=True)
class Command:
    """A line with {…} for what nodes have of their own, and the example it starts; everywhere: typed on each node, as torchrun's is."""

    line: str
    script: str = "train_ddp.py"
    everywhere: bool = False

    def on(self, nodes: Nodes, number: int = 0) -> str:
        """Return the line for the node with this number."""
        return self.line.format(
            nodes=len(nodes.names), ranks=nodes.ranks, total=nodes.total, slots=nodes.slots, first=nodes.names[0], number=number,
            port=PORT, python=f"{ENVIRONMENT}/bin/python", home=HOME, script=f"{self.script} --epochs {EPOCHS}",
        )  # fmt: skip


COMMANDS = {
    "allreduce-run": Command("allreduce-run {script}"),
    "torchrun on one node": Command("torchrun --standalone --nproc_per_node={ranks} {script}"),
    "torchrun": Command(
        "torchrun --nnodes={nodes} --nproc_per_node={ranks} --node_rank={number} --master_addr={first} --master_port={port} {script}",
        everywhere=True,
    ),
    "torchrun with c10d": Command(
        "torchrun --nnodes={nodes} --nproc_per_node={ranks} --max_restarts=3 --rdzv_id=typed --rdzv_backend=c10d"
        " --rdzv_endpoint={first}:{port} {script}",
        everywhere=True,
    ),
    "horovodrun": Command("horovodrun -np {total} -H {slots} {python} {home}/{script}", "train_horovod.py"),
    "horovodrun on one node": Command(
        "horovodrun -np {ranks} -H localhost:{ranks} {python} {home}/{script}", "train_horovod_tf.py"
    ),
    "mpirun": Command(
        "mpirun -np {total} -H {slots} --bind-to none --map-by slot -x NCCL_DEBUG=INFO"
        " -x MASTER_ADDR={first} -x MASTER_PORT={port} {python} {home}/{script}"
    ),
}


@dataclass(frozen=True)
class Line:
    """A line that trains nothing; why: what it shows; parts: what it must print, in any order; scripts: what it needs, in the checkout."""

    why: str
    text: str
    parts: tuple[str, ...]
    scripts: tuple[str, ...] = ()


# A package of the inventory by its name: it computes something whose result is known.
LINES = {
    "horovodrun --check-build": Line(
        "what Horovod was compiled with",
        "horovodrun --check-build",
        ("[X] TensorFlow", "[X] NCCL", "[X] Gloo"),
    ),
    "catboost": Line(
        "a model of two iterations",
        'python -c "from catboost import CatBoostRegressor as R; '
        "print('trees', R(iterations=2, verbose=0, allow_writing_files=False).fit([[0], [1]], [0, 1]).tree_count_)\"",
        ("trees 2",),
    ),
    "torchvision": Line(
        "its compiled operators, and CIFAR-10 as --data reads it",
        "python with_torchvision.py",
        ("of three boxes kept [0, 2]", "6 files of CIFAR-10 read alike"),
        ("tests/lab/with_torchvision.py", "examples/cifar10.py"),
    ),
    "torchaudio": Line(
        "a hundredfold power in decibels",
        'python -c "import torch, torchaudio; '
        "print('dB', torchaudio.functional.amplitude_to_DB(torch.tensor([100.]), 10, 1e-10, 0).tolist())\"",
        ("dB [20.0]",),
    ),
    "mpi4py": Line(
        "sums over two ranks, with the node's MPI",
        "mpirun --oversubscribe -np 2 python mpi_allreduce.py --megabytes 0.001 1",
        ("2 ranks on 1 node", "with Open MPI", "1000000 bytes"),
        ("examples/mpi_allreduce.py",),
    ),
    "torchmetrics": Line(
        "the accuracy of three answers of four",
        "python -c \"import torch, torchmetrics; m = torchmetrics.Accuracy(task='binary'); "
        "m.update(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 0, 0])); print('accuracy', m.compute().item())\"",
        ("accuracy 0.75",),
    ),
}


def place(names: Sequence[str], scripts: Sequence[str]) -> None:
    """Put files of the checkout into the home of the training user, on every node."""
    for name in names:
        for script in scripts:
            text = (paths.CHECKOUT / script).read_text(encoding="utf-8")
            target = Path(HOME) / Path(script).name
            podman(
                "exec",
                "--interactive",
                name,
                "install",
                "-o",
                USER,
                "-m",
                "0644",
                "/dev/stdin",
                target,
                input_text=text,
            )


def typed(name: str, line: str, activate: str = ACTIVATE) -> subprocess.CompletedProcess[str]:
    """Run a line in a login shell of the training user on a node; what it printed, errors with it."""
    argv = podman_command("exec", name, "runuser", "-l", USER, "-c", f"{activate} && exec timeout {SECONDS} {line}")
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def train(command: Command, nodes: Nodes, activate: str = ACTIVATE) -> str:
    """Type a command, wait for its end, and return what it printed; LabError has that where it did not train."""
    place(nodes.names, [f"examples/{command.script}"])
    where = nodes.names if command.everywhere else nodes.names[:1]
    lines = [command.on(nodes, number) for number in range(len(where))]
    with ThreadPoolExecutor() as pool:  # torchrun's agents wait for each other
        ends = list(pool.map(typed, where, lines, [activate] * len(where)))
    for name, line, done in zip(where, lines, ends, strict=True):
        if done.returncode:
            raise LabError(f"`{line}` ended with {done.returncode} on {name}:\n{done.stdout[-3000:]}")
    said = "\n".join(done.stdout for done in ends)  # rank 0 may be on any node
    problem = shortcoming(said, nodes.total)
    if problem:
        raise LabError(f"`{lines[0]}`: {problem}:\n{said[-3000:]}")
    return said


def say(line: Line, name: str, activate: str = ACTIVATE) -> None:
    """Type a line on a node; LabError where it fails, or does not print what it must."""
    place([name], line.scripts)
    done = typed(name, line.text, activate)
    lacking = [part for part in line.parts if part not in done.stdout]
    if done.returncode or lacking:
        problem = f"ended with {done.returncode}" if done.returncode else f"did not print {lacking[0]!r}"
        raise LabError(f"`{line.text}` {problem} on {name}:\n{done.stdout[-3000:]}")


def shortcoming(output: str, ranks: int) -> str | None:
    """Return the shortcoming of a training's output, in which this number of ranks must have learned."""
    if f"epoch {EPOCHS}/{EPOCHS} " not in output:
        return f"it did not reach epoch {EPOCHS}"
    found = LAST.search(output)
    if not found:
        return "it did not say what came of it"
    if int(found[3]) != ranks:
        return f"it had {found[3]} ranks instead of {ranks}"
    if float(found[2]) >= float(found[1]):
        return f"its loss did not fall: {found[1]} -> {found[2]}"
    return None


def prefix(name: str, activate: str = ACTIVATE) -> str:
    """Return the prefix of the Python that an activated shell finds: ENVIRONMENT for the directory that this link leads to."""
    found = f'print("{ENVIRONMENT}" if os.path.samefile(sys.prefix, "{ENVIRONMENT}") else sys.prefix)'
    done = typed(name, f"python -c 'import os, sys; {found}'", activate)
    if done.returncode or not done.stdout.strip():
        raise LabError(f"`{activate}` ended with {done.returncode} on {name}:\n{done.stdout[-3000:]}")
    return done.stdout.splitlines()[-1]
