# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs, distributions, architectures and kernels that a driver supports."""

from __future__ import annotations

from ...facts import GpuModel, Kernel, Machine, Mig, System
from ...rule import Context, Doubt, Rules
from ...versions import at_least
from .candidates import in_archive_of
from .kernels import limit
from .mig import mig_reason
from .row import ARCHIVES, Driver

rule = Rules()


@rule("driver-gpu-last-branch", "driver", "gpus", sources=("S4", "S6", "S8"))
def driver_gpu_last_branch(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """A GPU generation ends with a driver branch."""
    last, branch = gpu.row.get("max_driver_branch"), driver.row["branch"]["branch"]
    if last and branch > last and driver.row["source"] != "vendor":
        return f"driver branch {branch} no longer supports {gpu.version} ({gpu.row['architecture']}): its last branch is {last}"
    return None


@rule("driver-gpu-minimum", "driver", "gpus", sources=("S1", "S9", "S31"))
def driver_gpu_minimum(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """A GPU needs the first driver that knew it; without a known one, the driver of its first CUDA."""
    floor = gpu.row["min_driver"] or context.tables.bundled_driver(gpu.row["min_cuda"])
    if driver.row["source"] == "vendor":
        return None
    if not at_least(driver.version, floor):
        return f"{gpu.version} needs driver {floor} or newer, not {driver.version}"
    # A generation has no driver of its own in the tables; a model has, or the first driver that is known to know it.
    seen = gpu.row["min_driver"] or "chip" in gpu.row or at_least(driver.version, gpu.row.get("known_driver", "9999"))
    return None if seen else Doubt(f"whether driver {driver.version} is new enough for {gpu.version}")


@rule("kernel-modules-gpu", "driver", "gpus", sources=("S8",))
def kernel_modules_gpu(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """Blackwell runs on the open kernel modules only, what is older than Turing on the proprietary ones only."""
    flavour, able = driver.row["kernel_modules"], gpu.row["kernel_modules"]
    if flavour not in able and driver.row["source"] != "vendor":
        return f"{gpu.version} ({gpu.row['architecture']}) works with {' or '.join(able)} kernel modules only, not with {flavour} ones"
    return None


@rule(
    "driver-vgpu", "driver", "gpus", sources=("W1",),
    hint="leave the driver to the vGPU software (gpu_stack_take_charge: false), or set driver_source to runfile, and nvidia_driver_runfile to its installer",
)  # fmt: skip
def driver_vgpu(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """A vGPU runs with the guest driver of the vGPU software only, which NVIDIA's licensees download as a runfile."""
    if not gpu.row.get("vgpu") or driver.row["source"] not in ("nvidia", "distribution"):
        return None
    return f"{gpu.version} is a vGPU, which runs with the guest driver of NVIDIA's vGPU software only, and that is in no package repository"


@rule(
    "driver-mig", "driver", "mig", "gpus", sources=("S9", "B1", "B2"),
    hint="leave out mig",
)  # fmt: skip
def driver_mig(context: Context, driver: Driver, mig: Mig, gpu: GpuModel) -> str | None:
    """The GPUs that are going to be partitioned can be, and so."""
    return mig_reason(context.tables, gpu, mig.version)


@rule("fabric-manager-packaged", "driver", "gpus", sources=("S22", "D1", "K1"))
def fabric_manager_packaged(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """GPUs behind NVSwitch need more than a driver, and in its version; not every distribution's archive has that."""
    if not context.fabric or driver.row["source"] != "distribution":
        return None
    has = {"fabric_manager"} if "fabric_manager" in driver.row["archive"] else set()
    names = {"fabric_manager": "the fabric manager", "subnet_manager": "nvlsm", "imex": "nvidia-imex"}
    lacking = " and ".join(name for service, name in names.items() if service in context.fabric - has)
    return (
        f"{gpu.version} behind NVSwitch needs {lacking}, which the distribution's own archive lacks"
        if lacking
        else None
    )


@rule("driver-os", "driver", "os", sources=("S8", "S23", "D1", "K1"))
def driver_os(context: Context, driver: Driver, os: System) -> str | None:
    """The driver must be published for the distribution by the chosen source."""
    if driver.row["source"] == "nvidia" and not os.row.get("repository"):
        return f"NVIDIA has no repository for {os.version}"
    if driver.row["source"] == "distribution" and "distribution" not in os.row["drivers"]:
        return f"{os.version} has no NVIDIA driver in its own archive"
    if driver.row["source"] == "distribution" and not in_archive_of(driver.row["archive"], os.row):
        return f"{os.version} has no driver {driver.version} in its own archive{_transitional(context, driver, os)}"
    return _not_in_repository(os, driver.row["branch"]["branch"]) if driver.row["source"] == "nvidia" else None


def _not_in_repository(os: System, branch: int) -> str | None:
    """Return the reason why NVIDIA's repository for a distribution has no such branch, or may not have it."""
    first, last = os.row.get("driver_first"), os.row.get("driver_last")
    if first and branch < first:
        return f"NVIDIA's repository for {os.version} begins with driver branch {first}, so it has no {branch}"
    if last and branch > last:
        return f"NVIDIA's repository for {os.version} ends with driver branch {last}, so it has no {branch}"
    if not first and branch < os.row.get("driver_seen", 0):
        return Doubt(
            f"whether NVIDIA's repository for {os.version} has driver branch {branch}; the first that was seen is {os.row['driver_seen']}"
        )
    return None


def _transitional(context: Context, driver: Driver, os: System) -> str:
    """Ubuntu keeps the packages of a branch it gave up, empty, to bring in those of the next."""
    for row in context.tables.beside(ARCHIVES)["transitional"]:
        if in_archive_of(row, os.row) and row["from"] == driver.row["branch"]["branch"]:
            return f": its packages of branch {row['from']} only bring in those of branch {row['to']}"
    return ""


@rule("driver-arch", "driver", "arch", sources=("K1",))
def driver_arch(context: Context, driver: Driver, arch: Machine) -> str | None:
    """Server drivers for aarch64 begin with branch 470."""
    if arch.version == "aarch64" and driver.row["branch"]["branch"] < 470:
        return f"driver branch {driver.row['branch']['branch']} has no packages for aarch64 servers"
    return None


@rule(
    "driver-kernel", "driver", "kernels", sources=("N1", "N2", "N3", "N4", "N5", "N6", "N7"),
    hint="boot a kernel that the driver builds on, and remove newer ones or their headers",
)  # fmt: skip
def driver_kernel(context: Context, driver: Driver, kernel: Kernel) -> str | None:
    """A branch is not adapted to new kernels any more when it has ended, and its older releases never were."""
    row = limit(context.tables, driver, kernel.version)
    if row is None:
        return None
    return f"the modules of driver {driver.version} do not build on kernel {kernel.version}, nor on any other from {row['kernel']} on"
