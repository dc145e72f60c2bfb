# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod compiled with CUDA and NCCL on hosts like those of two reference systems; one compilation each.

The four A40s' beside the TensorFlow of their profile, with CUDA 11.8, and the A100s' beside a PyTorch for CUDA 12.4. The packages that the
roles install are the lab's stubs. What compiles is real (tests/lab/toolkit.py). No GPU computes: ranks train with Gloo.
"""

import json
import re
from dataclasses import dataclass

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import podman, toolkit, wheels

pytestmark = pytest.mark.lab

BEFORE = "base,cuda_repository,cuda_toolkit,nccl,cluster_ssh,python_env,frameworks"
ROLES = "python_env,frameworks,horovod"
CACHE = "/opt/allreduce/cache/horovod"
BIN = "/opt/allreduce/envs/main/bin"
SITE = "/opt/allreduce/envs/main/lib/python3.10/site-packages"
BUILT = f"cd /home/trainer && runuser -u trainer -- {BIN}/horovodrun --check-build 2>/dev/null | grep -F '[X]' | sed 's/.*] //' | sort"


@dataclass(frozen=True)
class Kind:
    """A host and its Horovod. capability: of its GPUs; module, linked: where Horovod is, and what it is linked with; built: what it then
    has, as controller and as operation."""

    distribution: str
    machine: str
    kit: toolkit.Toolkit
    request: dict
    capability: str
    module: str
    linked: str
    built: list
    script: str
    said: str


TENSORFLOW = Kind(
    "ubuntu2004", "a40-pcie", toolkit.CUDA_11_8,
    {"driver": "535", "tensorflow": "2.12.0", "horovod": "0.28.1", "python": "3.10"},
    "86", "tensorflow", "libtensorflow_framework.so.2",
    # Horovod also names a PyTorch that it was not compiled for.
    ["Gloo", "Gloo", "NCCL", "PyTorch", "TensorFlow"],
    "train_horovod_tf.py", "4 ranks on cpu with Gloo, TensorFlow 2.12.0",
)  # fmt: skip
PYTORCH = Kind(
    "ubuntu2204", "a100-80-nvlink", toolkit.CUDA_12_4,
    {"driver": "550", "pytorch": "2.6.0", "pytorch_index": "pypi", "horovod": "0.28.1", "python": "3.10"},
    "80", "torch", "libc10_cuda.so",
    ["Gloo", "Gloo", "NCCL", "PyTorch"],
    "train_horovod.py", "4 ranks on cpu with Gloo, PyTorch 2.6.0",
)  # fmt: skip


class Host(Cluster):
    """One host with everything that Horovod is compiled with, and no Horovod."""

    def __init__(self, kind):
        self.kind = kind
        wheels.ensure(kind.kit.wheels)
        options = ("--distribution", kind.distribution, "--machine", kind.machine, "--wheels", kind.kit.wheels)
        super().__init__(f"horovod-{kind.module}", 1, *options)
        self.host = self.hosts[0]
        run = self.site(BEFORE)
        assert run.status == 0, run.output[-6000:]

    def site(self, tags):
        return self.play(
            "playbooks/site.yml", "--tags", tags, "-e", json.dumps({"gpu_stack_request": self.kind.request})
        )

    def checked(self):
        """Status of the check of playbook verify that compares Horovod with its plan."""
        more = {"gpu_stack_request": self.kind.request, "verify_collectives": False, "verify_network": False}
        self.play("playbooks/verify.yml", "-e", json.dumps(more))
        document = json.loads((self.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
        checks = {one["name"]: one["status"] for one in document["nodes"][self.host]["checks"]}
        return checks["main_horovod_build"]

    def here(self, command):
        """What a command says on the host."""
        return self.on(self.host, command).strip()


@pytest.fixture(scope="module", params=[TENSORFLOW, PYTORCH], ids=lambda kind: kind.module)
def host(request):
    """The host; ALLREDUCE_KEEP=1 leaves it, and takes it again."""
    made = Host(request.param)
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def equipped(host):
    """The host with a real toolkit and a real NCCL."""
    podman.prepare()
    toolkit.put(host.host, host.kind.kit)
    return host


@pytest.fixture(scope="module")
def compiled(equipped):
    """The host with Horovod."""
    run = equipped.site(ROLES)
    assert run.status == 0, run.output[-6000:]
    return equipped


def test_a_missing_nccl_is_named_before_anything_is_compiled(equipped):
    equipped.here(f"mv {toolkit.HEADER} {toolkit.HEADER}.away")
    try:
        run = equipped.site(ROLES)
    finally:
        equipped.here(f"mv {toolkit.HEADER}.away {toolkit.HEADER}")
    assert run.status != 0
    said = "NCCL's header nccl.h is missing; install it first (--tags nccl)"
    assert f"Cannot compile Horovod 0.28.1 on {equipped.host}: {said}" in run.words, run.output[-3000:]
    assert not equipped.here(f"ls {CACHE}/*/compile.log 2>/dev/null || true")


def test_it_is_compiled_with_cuda_and_nccl_for_the_gpus_of_the_host(compiled):
    kind = compiled.kind
    log = compiled.here(f"cat {CACHE}/*/compile.log")
    code = rf"arch=compute_{kind.capability},code=\"sm_{kind.capability},compute_{kind.capability}\""
    assert f"{kind.kit.home}/bin/nvcc" in log and code in log
    needed = compiled.here(f"readelf -d {SITE}/horovod/{kind.module}/mpi_lib*.so | grep NEEDED")
    assert "libnccl.so.2" in needed and kind.linked in needed
    assert compiled.here(BUILT).split() == kind.built
    assert compiled.checked() == "passed"


def test_the_second_run_compiles_nothing(compiled):
    run = compiled.site(ROLES)
    assert run.status == 0 and run.recap[compiled.host]["changed"] == 0, run.output[-6000:]


def test_four_ranks_train_with_gloo(compiled):
    name = compiled.kind.script
    script = (CHECKOUT / "examples" / name).read_text(encoding="utf-8")
    compiled.here(f"cat > /home/trainer/{name} <<'END'\n{script}END")
    start = f"{BIN}/horovodrun -np 4 -H localhost:4 {BIN}/python {name} --samples 1024 --batch-size 32"
    said = compiled.here(f"runuser -l trainer -c '{start} --epochs 3' 2>&1")
    assert compiled.kind.said in said, said[-3000:]
    before, after = map(float, re.search(r"loss ([\d.]+) -> ([\d.]+), \d+ samples/s, 4 ranks", said).groups())
    assert after < before, said[-2000:]
