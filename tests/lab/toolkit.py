# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA toolkits and NCCLs that compile, over the stubs of the lab's mirror on an Ubuntu: for Horovod.

nvcc, headers and runtime come from Debian's packages and lie where NVIDIA's would, NCCL is the one of NVIDIA's wheel (in the
sets `horovod-cuda…` of wheels.yml). A node has uv before, which role python_env installs.
"""

from dataclasses import dataclass

from . import services, wheels
from .podman import podman

HEADER, LIBRARIES = "/usr/include/nccl.h", "/usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Toolkit:
    """A toolkit. nvcc: the version that it tells; suite: the Debian that has it; runtime: version of libcudart's name.

    wheels: the set that has NCCL; nccl: its requirement.
    """

    cuda: str
    nvcc: str
    suite: str
    runtime: str
    wheels: str
    nccl: str

    @property
    def home(self) -> str:
        return f"/usr/local/cuda-{self.cuda}"


CUDA_11_8 = Toolkit("11.8", "11.8.89", "bookworm", "11.0", "horovod-cuda", "nvidia-nccl-cu11==2.16.2")
CUDA_12_4 = Toolkit("12.4", "12.4.131", "trixie", "12", "horovod-cuda12", "nvidia-nccl-cu12==2.21.5")
# Debian's packages over the stubs, in the places of NVIDIA's. apt checks their signature.
TOOLKIT = """
set -eu
mkdir -p /srv/cuda/lists/partial /srv/cuda/cache/archives/partial
cd /srv/cuda
debian=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $debian {suite} main non-free" > sources.list
set -- -qq -o Dir::Etc::sourcelist=/srv/cuda/sources.list -o Dir::Etc::sourceparts=/dev/null \\
  -o Dir::State::lists=/srv/cuda/lists -o Dir::Cache=/srv/cuda/cache -o APT::Sandbox::User=root
apt-get "$@" update
apt-get "$@" download nvidia-cuda-toolkit nvidia-cuda-dev libcudart{runtime} libcu++-dev
target={home}/targets/x86_64-linux
mkdir -p {home}/bin {home}/nvvm/bin $target/lib
dpkg-deb -x nvidia-cuda-toolkit_*.deb toolkit
rm toolkit/usr/bin/nvcc # a script that calls the program
cp -r --remove-destination toolkit/usr/bin/. toolkit/usr/lib/nvidia-cuda-toolkit/bin/nvcc toolkit/usr/lib/nvidia-cuda-toolkit/bin/crt {home}/bin
cp toolkit/usr/lib/nvidia-cuda-toolkit/bin/cicc {home}/nvvm/bin
cp -r toolkit/usr/lib/nvidia-cuda-toolkit/libdevice {home}/nvvm
dpkg-deb --fsys-tarfile nvidia-cuda-dev_*.deb | tar x --wildcards ./usr/include '*/libcudart_static.a' '*/libcudadevrt.a' '*/libculibos.a'
dpkg-deb --fsys-tarfile libcu++-dev_*.deb | tar x ./usr/include
cp -r usr/include $target
dpkg-deb --fsys-tarfile libcudart{runtime}_*.deb | tar x ./usr/lib
cp -P --remove-destination usr/lib/x86_64-linux-gnu/libc* $target/lib
ln -sfn libcudart.so.{runtime} $target/lib/libcudart.so
ln -sfn targets/x86_64-linux/include {home}/include
ln -sfn targets/x86_64-linux/lib {home}/lib64
cat > {home}/bin/nvcc.profile <<'END'
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
NCCL = """
set -eu
/opt/allreduce/uv/bin/uv --no-config --no-cache pip install -q --no-index --find-links {links} --no-deps --target /srv/nccl \\
  --python /usr/bin/python3 {nccl}
cp /srv/nccl/nvidia/nccl/include/*.h /usr/include
cp --remove-destination /srv/nccl/nvidia/nccl/lib/libnccl.so.2 {libraries}/libnccl.so.2
ln -sfn libnccl.so.2 {libraries}/libnccl.so
rm -r /srv/nccl
"""


def put(host: str, kit: Toolkit = CUDA_11_8) -> None:
    """Lay both out on a host; nothing is done where they are."""
    told = podman("exec", host, "sh", "-c", f"{kit.home}/bin/nvcc --version || true")
    if "Built on" in told and f"V{kit.nvcc}" in told:  # the stub tells the version alone
        return
    links = services.wheels_url(wheels.get(kit.wheels).view)
    toolkit = TOOLKIT.format(home=kit.home, suite=kit.suite, runtime=kit.runtime)
    for script in (toolkit, NCCL.format(links=links, nccl=kit.nccl, libraries=LIBRARIES)):
        podman("exec", host, "sh", "-c", script)
