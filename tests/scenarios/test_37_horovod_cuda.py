# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod compiled with CUDA and NCCL on a host like the four A40s', beside the TensorFlow of their profile; one compilation.

The packages that the roles install are the lab's stubs. What compiles is real: nvcc, headers and runtime of CUDA 11.8 are laid out from
Debian's packages where NVIDIA's would be, NCCL is the one of NVIDIA's wheel. No GPU computes: ranks train with Gloo.
"""

import json
import re

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import wheels

pytestmark = pytest.mark.lab

REQUEST = {"driver": "535", "tensorflow": "2.12.0", "horovod": "0.28.1", "python": "3.10"}
BEFORE = "base,cuda_repository,cuda_toolkit,nccl,cluster_ssh,python_env,frameworks"
ROLES = "python_env,frameworks,horovod"
CACHE = "/opt/allreduce/cache/horovod"
BIN = "/opt/allreduce/envs/main/bin"
SITE = "/opt/allreduce/envs/main/lib/python3.10/site-packages"
CUDA = "/usr/local/cuda-11.8"
HEADER, LIBRARIES = "/usr/include/nccl.h", "/usr/lib/x86_64-linux-gnu"
# Debian's packages over the stubs, in the places of NVIDIA's. apt checks their signature.
TOOLKIT = f"""
set -eu
mkdir -p /srv/cuda/lists/partial /srv/cuda/cache/archives/partial
cd /srv/cuda
debian=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $debian bookworm non-free" > sources.list
set -- -qq -o Dir::Etc::sourcelist=/srv/cuda/sources.list -o Dir::Etc::sourceparts=/dev/null \\
  -o Dir::State::lists=/srv/cuda/lists -o Dir::Cache=/srv/cuda/cache -o APT::Sandbox::User=root
apt-get "$@" update
apt-get "$@" download nvidia-cuda-toolkit nvidia-cuda-dev libcudart11.0
target={CUDA}/targets/x86_64-linux
mkdir -p {CUDA}/bin {CUDA}/nvvm/bin $target/lib
dpkg-deb -x nvidia-cuda-toolkit_*.deb toolkit
rm toolkit/usr/bin/nvcc # a script that calls the program
cp -r --remove-destination toolkit/usr/bin/. toolkit/usr/lib/nvidia-cuda-toolkit/bin/nvcc toolkit/usr/lib/nvidia-cuda-toolkit/bin/crt {CUDA}/bin
cp toolkit/usr/lib/nvidia-cuda-toolkit/bin/cicc {CUDA}/nvvm/bin
cp -r toolkit/usr/lib/nvidia-cuda-toolkit/libdevice {CUDA}/nvvm
dpkg-deb --fsys-tarfile nvidia-cuda-dev_*.deb | tar x --wildcards ./usr/include '*/libcudart_static.a' '*/libcudadevrt.a' '*/libculibos.a'
cp -r usr/include $target
dpkg-deb --fsys-tarfile libcudart11.0_*.deb | tar x ./usr/lib
cp -P --remove-destination usr/lib/x86_64-linux-gnu/libc* $target/lib
ln -sfn libcudart.so.11.0 $target/lib/libcudart.so
ln -sfn targets/x86_64-linux/include {CUDA}/include
ln -sfn targets/x86_64-linux/lib {CUDA}/lib64
cat > {CUDA}/bin/nvcc.profile <<'END'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/$(_TARGET_DIR_)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)"
END
cd /
rm -r /srv/cuda
"""
# The wheel has no name to link to.
NCCL = f"""
set -eu
/opt/allreduce/uv/bin/uv --no-config --no-cache pip install -q --no-index --find-links {{places}} --no-deps --target /srv/nccl \\
  --python /usr/bin/python3 nvidia-nccl-cu11
cp /srv/nccl/nvidia/nccl/include/*.h /usr/include
cp --remove-destination /srv/nccl/nvidia/nccl/lib/libnccl.so.2 {LIBRARIES}/libnccl.so.2
ln -sfn libnccl.so.2 {LIBRARIES}/libnccl.so
rm -r /srv/nccl
"""
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
    if "11.8.89" not in host.here(f"{CUDA}/bin/nvcc --version | grep built || true"):
        host.here(TOOLKIT)
        text = (host.inventory / "hosts.yml").read_text(encoding="utf-8")
        host.here(NCCL.format(places=re.search(r"python_env_find_links:\n\s+- (\S+)", text)[1]))
    return host


@pytest.fixture(scope="module")
def compiled(equipped):
    """The host with Horovod."""
    run = equipped.site(ROLES)
    assert run.status == 0, run.output[-6000:]
    return equipped


def test_a_missing_nccl_is_named_before_anything_is_compiled(equipped):
    equipped.here(f"mv {HEADER} {HEADER}.away")
    try:
        run = equipped.site(ROLES)
    finally:
        equipped.here(f"mv {HEADER}.away {HEADER}")
    assert run.status != 0
    said = "NCCL's header nccl.h is missing; install it first (--tags nccl)"
    assert f"Cannot compile Horovod 0.28.1 on {equipped.host}: {said}" in run.words, run.output[-3000:]
    assert not equipped.here(f"ls {CACHE}/*/compile.log 2>/dev/null || true")


def test_it_is_compiled_with_cuda_and_nccl_for_the_gpus_of_the_host(compiled):
    log = compiled.here(f"cat {CACHE}/*/compile.log")
    assert f"{CUDA}/bin/nvcc" in log and r"arch=compute_86,code=\"sm_86,compute_86\"" in log
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
