# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users type on nodes, and what these commands must print, without nodes: podman is a program that writes down what it is asked."""

import json
import shlex

import pytest

from tests.lab import paths, users
from tests.lab.progress import LabError

# As examples/train_ddp.py printed it on two ranks.
TRAINED = """\
2 ranks on cpu with gloo, PyTorch 2.13.0
epoch 1/2  loss 1.9123  accuracy 0.41  712 samples/s
epoch 2/2  loss 1.4321  accuracy 0.58  743 samples/s
loss 1.9123 -> 1.4321, accuracy 0.581, 728 samples/s, 2 ranks
"""
NODES = users.Nodes(("gpu-1", "gpu-2"), 1)
PODMAN = """#!/usr/bin/env python3
import json, pathlib, sys
asked = sys.argv[sys.argv.index("exec") + 1:]
said = json.loads(pathlib.Path("{folder}/said").read_text())
given = sys.stdin.read() if asked[0] == "--interactive" else ""
with open("{folder}/asked", "a") as file:
    print(json.dumps(dict(asked=asked, given=given)), file=file)
status, output = said.get(asked[0], (0, ""))
print(output, end="")
sys.exit(status)
"""


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Nodes on which each command prints and returns what is written down for its node."""

    class Answering:
        def say(self, **said):
            text = json.dumps({name.replace("_", "-"): answer for name, answer in said.items()})
            (tmp_path / "said").write_text(text, encoding="utf-8")

        @property
        def asked(self):
            lines = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
            return sorted((json.loads(line) for line in lines), key=lambda one: one["asked"])

    for name, text in {"podman": PODMAN, "nsenter": '#!/bin/sh\nshift\nexec "$@"\n'}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.replace("{folder}", str(tmp_path)), encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return Answering()


@pytest.mark.parametrize(
    ("command", "ranks", "line"),
    [
        ("allreduce-run", 1, "allreduce-run train_ddp.py --epochs 2"),
        ("torchrun on one node", 4, "torchrun --standalone --nproc_per_node=4 train_ddp.py --epochs 2"),
        (
            "torchrun",
            4,
            "torchrun --nnodes=2 --nproc_per_node=4 --node_rank=1 --master_addr=gpu-1 --master_port=29500 train_ddp.py --epochs 2",
        ),
        (
            "torchrun with c10d",
            4,
            "torchrun --nnodes=2 --nproc_per_node=4 --max_restarts=3 --rdzv_id=typed --rdzv_backend=c10d --rdzv_endpoint=gpu-1:29500"
            " train_ddp.py --epochs 2",
        ),
        (
            "horovodrun",
            2,
            "horovodrun -np 4 -H gpu-1:2,gpu-2:2 /opt/allreduce/envs/main/bin/python /home/trainer/train_horovod.py --epochs 2",
        ),
        (
            "horovodrun on one node",
            4,
            "horovodrun -np 4 -H localhost:4 /opt/allreduce/envs/main/bin/python /home/trainer/train_horovod_tf.py --epochs 2",
        ),
        (
            "mpirun",
            4,
            "mpirun -np 8 -H gpu-1:4,gpu-2:4 --bind-to none --map-by slot -x NCCL_DEBUG=INFO -x MASTER_ADDR=gpu-1 -x MASTER_PORT=29500"
            " /opt/allreduce/envs/main/bin/python /home/trainer/train_ddp.py --epochs 2",
        ),
    ],
)
def test_what_is_typed(command, ranks, line):
    assert users.COMMANDS[command].on(users.Nodes(NODES.names, ranks), 1) == line


def test_every_command_starts_an_example():
    assert [
        one.script for one in users.COMMANDS.values() if not (paths.CHECKOUT / "examples" / one.script).exists()
    ] == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("", ""), None),
        (("2 ranks\n", "1 rank\n"), "it had 1 ranks instead of 2"),
        (("-> 1.4321", "-> 1.9123"), "its loss did not fall: 1.9123 -> 1.9123"),
        (("epoch 2/2 ", "epoch 2/3 "), "it did not reach epoch 2"),
        (("loss 1.9123 ->", "it ended at"), "it did not say what came of it"),
    ],
)
def test_what_a_training_must_print(change, problem):
    assert users.shortcoming(TRAINED.replace(*change), 2) == problem


def test_a_training_of_horovod_says_the_same_in_its_words():
    said = "2 ranks on cpu with Gloo, PyTorch 2.13.0\nepoch 1/2  loss 2.1\nepoch 2/2  loss 1.8\nloss 2.1000 -> 1.8000, 99 samples/s, 2 ranks\n"
    assert users.shortcoming(said, 2) is None


def test_torchrun_is_typed_on_every_node_with_its_number(nodes):
    nodes.say(gpu_1=(0, TRAINED))
    users.train(users.COMMANDS["torchrun"], NODES)
    typed = [one["asked"] for one in nodes.asked if one["asked"][0] != "--interactive"]
    assert [one[:5] for one in typed] == [[name, "runuser", "-l", "trainer", "-c"] for name in NODES.names]
    for number, one in enumerate(typed):
        assert one[5].startswith(f"{users.ACTIVATE} && exec timeout 900 torchrun ")
        assert f"--node_rank={number} " in one[5]
    placed = [one for one in nodes.asked if one["asked"][0] == "--interactive"]
    assert [one["asked"][1] for one in placed] == list(NODES.names)
    assert {one["given"] for one in placed} == {
        (paths.CHECKOUT / "examples" / "train_ddp.py").read_text(encoding="utf-8")
    }


def test_rank_0_may_be_on_another_node_than_the_first(nodes):
    """As c10d has it."""
    nodes.say(gpu_2=(0, TRAINED))
    users.train(users.COMMANDS["torchrun with c10d"], NODES)


def test_mpirun_is_typed_on_the_first_node(nodes):
    nodes.say(gpu_1=(0, TRAINED))
    users.train(users.COMMANDS["mpirun"], NODES)
    assert [one["asked"][0] for one in nodes.asked if one["asked"][0] != "--interactive"] == ["gpu-1"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"gpu_1": (0, TRAINED), "gpu_2": (3, "no such port")}, r"`torchrun .* ended with 3 on gpu-2:\nno such port"),
        ({"gpu_1": (0, "")}, r"`torchrun .*`: it did not reach epoch 2"),
    ],
)
def test_a_command_that_did_not_train_ends_the_job(nodes, said, message):
    nodes.say(**said)
    with pytest.raises(LabError, match=message):
        users.train(users.COMMANDS["torchrun"], NODES)


def test_the_python_that_an_activated_shell_finds(nodes):
    nodes.say(gpu_1=(0, "/usr\n"), gpu_2=(1, "no such file\n"))
    assert users.prefix("gpu-1", users.LOAD) == "/usr"
    assert nodes.asked[0]["asked"][5].startswith("module load allreduce/main && exec timeout 900 python -c ")
    with pytest.raises(LabError, match=r"`\. /opt/.*/activate` ended with 1 on gpu-2:\nno such file"):
        users.prefix("gpu-2")


BUILD = """\
Available Frameworks:
    [X] TensorFlow
    [ ] PyTorch
Available Controllers:
    [{}] Gloo
Available Tensor Operations:
    [X] NCCL
    [X] Gloo
"""


def test_a_line_must_print_its_parts(nodes):
    line = users.LINES["horovodrun --check-build"]
    nodes.say(gpu_1=(0, BUILD.format("X")))
    users.say(line, "gpu-1")
    assert nodes.asked[0]["asked"][5] == f"{users.ACTIVATE} && exec timeout 900 horovodrun --check-build"


@pytest.mark.parametrize(
    ("status", "said", "problem"),
    [
        (0, BUILD.replace("[X] NCCL", "[ ] NCCL"), r"did not print '\[X\] NCCL'"),
        (1, BUILD, "ended with 1"),
    ],
)
def test_a_line_that_printed_something_else_ends_the_job(nodes, status, said, problem):
    nodes.say(gpu_1=(status, said))
    with pytest.raises(LabError, match=rf"^`horovodrun --check-build` {problem} on gpu-1:\n"):
        users.say(users.LINES["horovodrun --check-build"], "gpu-1")


def test_a_line_finds_its_scripts_beside_it(nodes):
    line = users.LINES["torchvision"]
    nodes.say(gpu_1=(0, "\n".join(line.parts)))
    users.say(line, "gpu-1")
    placed = [one for one in nodes.asked if one["asked"][0] == "--interactive"]
    assert {one["asked"][-1] for one in placed} == {
        f"/home/trainer/{name}" for name in ("cifar10.py", "with_torchvision.py")
    }
    assert {one["given"] for one in placed} == {(paths.CHECKOUT / name).read_text("utf-8") for name in line.scripts}


@pytest.mark.parametrize("name", users.LINES)
def test_lines_keep_their_quotes_in_the_shell(name):
    """The program that Python gets is one, and none of it is changed."""
    program, *given = shlex.split(users.LINES[name].text)
    if given[0] == "-c":
        _option, text = given
        assert program == "python"
        compile(text, name, "exec")
