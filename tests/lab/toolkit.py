# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CUDA toolkit and an NCCL that compile, over the stubs of the lab's mirror on an Ubuntu 20.04: for Horovod with CUDA 11.8.

nvcc, headers and runtime come from Debian's packages and lie where NVIDIA's would, NCCL is the one of NVIDIA's wheel (the set
`horovod-cuda` of wheels.yml). A node has uv before, which role python_env installs.
"""

from . import services, wheels
from .podman import podman

CUDA = "/usr/local/cuda-11.8"
RELEASE = "11.8.89"
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
/opt/allreduce/uv/bin/uv --no-config --no-cache pip install -q --no-index --find-links {{links}} --no-deps --target /srv/nccl \\
  --python /usr/bin/python3 nvidia-nccl-cu11
cp /srv/nccl/nvidia/nccl/include/*.h /usr/include
cp --remove-destination /srv/nccl/nvidia/nccl/lib/libnccl.so.2 {LIBRARIES}/libnccl.so.2
ln -sfn libnccl.so.2 {LIBRARIES}/libnccl.so
rm -r /srv/nccl
"""


def put(host: str) -> None:
    """Lay both out on a host; nothing is done where they are."""
    if RELEASE in podman("exec", host, "sh", "-c", f"{CUDA}/bin/nvcc --version | grep built || true"):
        return
    links = services.wheels_url(wheels.get("horovod-cuda").view)
    for script in (TOOLKIT, NCCL.format(links=links)):
        podman("exec", host, "sh", "-c", script)
