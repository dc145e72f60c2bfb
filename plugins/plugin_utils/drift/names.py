# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names by which packages of a component are found that the plan does not name: other versions, other builds."""

from __future__ import annotations

# Of another version, or by NVIDIA's other spelling: NVIDIA's repositories name it nvidia-fabricmanager-BRANCH on
# Ubuntu, nvidia-fabricmanager or nvidia-fabric-manager elsewhere.
FABRIC_MANAGER_PACKAGES = ("nvidia-fabricmanager", "nvidia-fabricmanager-[0-9]*", "nvidia-fabric-manager")
IMEX_PACKAGES = ("nvidia-imex", "nvidia-imex-[0-9]*")
# They move with the fabric manager, so its role holds them, although the driver's patterns name them, too.
DRIVER_EXCLUDED = ("*fabricmanager*", "*fabric-manager*", "libnvidia-nscq*", "nvidia-imex*", "libnvsdm*")
# Everything that must have the driver's version.
FABRIC_MANAGER_HELD = (*DRIVER_EXCLUDED, "nvlsm", "nvlink5*")
CUDNN_PACKAGES = ("libcudnn*", "cudnn*")
NCCL_PACKAGES = ("libnccl*",)
# DCGM 3 is one package; of DCGM 4, the core and the plugins for each CUDA, which want a core of their own version.
DCGM_PACKAGES = (
    "datacenter-gpu-manager", "datacenter-gpu-manager-[0-9]-core", "datacenter-gpu-manager-[0-9]-cuda[0-9]*",
    "datacenter-gpu-manager-[0-9]-proprietary*",
)  # fmt: skip
# Not the exporter, whose versions are its own.
DCGM_HELD = ("datacenter-gpu-manager", "datacenter-gpu-manager-[0-9]-*")
CONTAINER_TOOLKIT_PACKAGES = ("nvidia-container-toolkit*", "libnvidia-container1", "libnvidia-container-tools")
# Common names of driver packages, to remove one that no plan describes.
DRIVER_PACKAGES = (
    "cuda-drivers*", "kmod-nvidia*", "nvidia-driver*", "nvidia-headless*", "nvidia-kernel*", "nvidia-dkms*",
    "libnvidia-compute*",
)  # fmt: skip
