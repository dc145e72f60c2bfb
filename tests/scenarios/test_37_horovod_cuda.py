# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod compiled with CUDA and NCCL on a host like the four A40s', beside the TensorFlow of their profile; one compilation.

The packages that the roles install are the lab's stubs. What compiles is real (tests/lab/toolkit.py). No GPU computes: ranks train with
Gloo.
"""

import json
import re

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import podman, toolkit, wheels

pytestmark = pytest.mark.lab

REQUEST = {"driver": "535", "tensorflow": "2.12.0", "horovod": "0.28.1", "python": "3.10"}
BEFORE = "base,cuda_repository,cuda_toolkit,nccl,cluster_ssh,python_env,frameworks"
ROLES = "python_env,frameworks,horovod"
CACHE = "/opt/allreduce/cache/horovod"
BIN = "/opt/allreduce/envs/main/bin"
SITE = "/opt/allreduce/envs/main/lib/python3.10/site-packages"
BUILT = f"cd /home/trainer && runuser -u trainer -- {BIN}/horovodrun --check-build 2>/dev/null | grep -F '[X]' | sed 's/.*] //' | sort"


class Host(Cluster):
    """One host with everything that Horovod is compiled with, and no Horovod."""

    def __init__(self):
        wheels.ensure("horovod-cuda")
        options = ("--distribution", "ubuntu2004", "--machine", "a40-pcie", "--wheels", "horovod-cuda")
        super().__init__("horovod-cuda", 1, *options)
        self.host = self.hosts[0]
        run = self.site(BEFORE)
        assert run.status == 0, run.output[-6000:]

    def site(self, tags):
        return self.play("playbooks/site.yml", "--tags", tags, "-e", json.dumps({"gpu_stack_request": REQUEST}))

    def checked(self):
        """Status of the check of playbook verify that compares Horovod with its plan."""
        more = {"gpu_stack_request": REQUEST, "verify_collectives": False, "verify_network": False}
        self.play("playbooks/verify.yml", "-e", json.dumps(more))
        document = json.loads((self.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
        checks = {one["name"]: one["status"] for one in document["nodes"][self.host]["checks"]}
        return checks["main_horovod_build"]

    def here(self, command):
        """What a command says on the host."""
        return self.on(self.host, command).strip()


@pytest.fixture(scope="module")
def host():
    """The host; ALLREDUCE_KEEP=1 leaves it, and takes it again."""
    made = Host()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def equipped(host):
    """The host with a real toolkit and a real NCCL."""
    podman.prepare()
    toolkit.put(host.host)
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
    log = compiled.here(f"cat {CACHE}/*/compile.log")
    assert f"{toolkit.CUDA}/bin/nvcc" in log and r"arch=compute_86,code=\"sm_86,compute_86\"" in log
    needed = compiled.here(f"readelf -d {SITE}/horovod/tensorflow/mpi_lib*.so | grep NEEDED")
    assert "libnccl.so.2" in needed and "libtensorflow_framework.so.2" in needed
    # As controller and as operation. Horovod also names a PyTorch that it was not compiled for.
    assert compiled.here(BUILT).split() == ["Gloo", "Gloo", "NCCL", "PyTorch", "TensorFlow"]
    assert compiled.checked() == "passed"


def test_the_second_run_compiles_nothing(compiled):
    run = compiled.site(ROLES)
    assert run.status == 0 and run.recap[compiled.host]["changed"] == 0, run.output[-6000:]


def test_four_ranks_train_with_gloo(compiled):
    script = (CHECKOUT / "examples" / "train_horovod_tf.py").read_text(encoding="utf-8")
    compiled.here(f"cat > /home/trainer/train_horovod_tf.py <<'END'\n{script}END")
    start = f"{BIN}/horovodrun -np 4 -H localhost:4 {BIN}/python train_horovod_tf.py --samples 1024 --batch-size 32"
    said = compiled.here(f"runuser -l trainer -c '{start} --epochs 3' 2>&1")
    assert "4 ranks on cpu with Gloo, TensorFlow 2.12.0" in said, said[-3000:]
    before, after = map(float, re.search(r"loss ([\d.]+) -> ([\d.]+), \d+ samples/s, 4 ranks", said).groups())
    assert after < before, said[-2000:]
