# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the driver, the CUDA libraries of the host, and the host itself."""

from __future__ import annotations

from .candidates import in_archive_of
from .interpreters import offered
from .kernels import limit
from .kinds import AnsibleCore, Cudnn, Driver, GpuModel, Kernel, Library, Machine, Python, System, Toolkit
from .rule import Context, rule
from .versions import at_least, major, minor


@rule("driver-gpu-last-branch", "driver", "gpus", sources=("S4", "S6", "S8"))
def driver_gpu_last_branch(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """A GPU generation ends with a driver branch."""
    last, branch = gpu.row["max_driver_branch"], driver.row["branch"]["branch"]
    if last and branch > last and driver.row["source"] != "vendor":
        return f"driver branch {branch} no longer supports {gpu.version} ({gpu.row['architecture']}): its last branch is {last}"
    return None


@rule("driver-gpu-minimum", "driver", "gpus", sources=("S1", "S9", "S31"))
def driver_gpu_minimum(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """A GPU needs the first driver that knew it; without a known one, the driver of its first CUDA."""
    floor = gpu.row["min_driver"] or context.tables.bundled_driver(gpu.row["min_cuda"])
    if not at_least(driver.version, floor) and driver.row["source"] != "vendor":
        return f"{gpu.version} needs driver {floor} or newer, not {driver.version}"
    return None


@rule("kernel-modules-gpu", "driver", "gpus", sources=("S8",))
def kernel_modules_gpu(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """Blackwell runs on the open kernel modules only, what is older than Turing on the proprietary ones only."""
    flavour, able = driver.row["kernel_modules"], gpu.row["kernel_modules"]
    if flavour not in able and driver.row["source"] != "vendor":
        return f"{gpu.version} ({gpu.row['architecture']}) works with {' or '.join(able)} kernel modules only, not with {flavour} ones"
    return None


@rule("fabric-manager-packaged", "driver", "gpus", sources=("S22", "D1", "K1"))
def fabric_manager_packaged(context: Context, driver: Driver, gpu: GpuModel) -> str | None:
    """GPUs behind NVSwitch need more than a driver, and in its version; not every distribution's archive has that."""
    if not context.fabric or driver.row["source"] != "distribution":
        return None
    has = {"fabric_manager"} if "fabric_manager" in driver.row["archive"] else set()
    names = {"fabric_manager": "the fabric manager", "subnet_manager": "nvlsm", "imex": "nvidia-imex"}
    lacking = " and ".join(name for service, name in names.items() if service in context.fabric - has)
    return (
        f"{gpu.version} behind NVSwitch needs {lacking}, not carried by the distribution's own archive"
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
    first, last, branch = os.row.get("driver_first"), os.row.get("driver_last"), driver.row["branch"]["branch"]
    if driver.row["source"] == "nvidia" and first and branch < first:
        return f"NVIDIA's repository for {os.version} begins with driver branch {first}, so it has no {branch}"
    if driver.row["source"] == "nvidia" and last and branch > last:
        return f"NVIDIA's repository for {os.version} ends with driver branch {last}, so it has no {branch}"
    return None


def _transitional(context: Context, driver: Driver, os: System) -> str:
    """Ubuntu keeps the packages of a branch it gave up, empty, to bring in those of the next."""
    for row in context.tables.subjects["archives"]["transitional"]:
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
    return f"the modules of driver {driver.version} do not build on kernel {kernel.version}, nor on others from {row['kernel']} on"


@rule("cuda-driver-floor", "cuda", "driver", sources=("S1", "S2"))
def cuda_driver_floor(context: Context, cuda: Toolkit, driver: Driver) -> str | None:
    """Programs of a toolkit run from the driver floor of its major on; below it only with cuda-compat, where allowed."""
    if cuda.absent or at_least(driver.version, context.tables.driver_floor(cuda.version)):
        return None
    if context.forward_compat and "cuda" in context.asked and forward_branch(cuda, driver):
        return None
    floor = context.tables.driver_floor(cuda.version)
    return f"CUDA {minor(cuda.version)} needs driver {floor} or newer, not {driver.version}"


def forward_branch(cuda: Toolkit, driver: Driver) -> bool:
    """Return whether the cuda-compat package of a toolkit may stand on this driver branch."""
    return driver.row["branch"]["branch"] in cuda.row["forward_compat_branches"]


@rule("cuda-gpu", "cuda", "gpus", sources=("S6", "S31"))
def cuda_gpu(context: Context, cuda: Toolkit, gpu: GpuModel) -> str | None:
    """A toolkit compiles for a range of compute capabilities."""
    if cuda.absent:
        return None
    capability = gpu.row["compute_capability"]
    if not at_least(capability, cuda.row["min_cc"]):
        return (
            f"CUDA {cuda.row['version']} dropped {gpu.version} (compute capability {capability} < {cuda.row['min_cc']})"
        )
    if not at_least(cuda.row["version"], gpu.row["min_cuda"]):
        return f"{gpu.version} needs CUDA {gpu.row['min_cuda']} or newer, not {cuda.row['version']}"
    return None


@rule("cuda-os", "cuda", "os", sources=("S1", "S11", "S12", "K1"))
def cuda_os(context: Context, cuda: Toolkit, os: System) -> str | None:
    """A toolkit is published for certain distributions only."""
    if cuda.absent:
        return None
    first, last, number = os.row.get("cuda_first"), os.row.get("cuda_last"), cuda.row["version"]
    if first and not at_least(number, first):
        return f"CUDA {number} was never published for {os.version}, whose first toolkit is {first}"
    if last and not at_least(last, number):
        return f"CUDA {number} is not published for {os.version} any more: its last toolkit is {last}"
    return None


@rule("cudnn-cuda", "cudnn", "cuda", sources=("S20", "K1"))
def cudnn_cuda(context: Context, cudnn: Cudnn, cuda: Toolkit) -> str | None:
    """System cuDNN stands on a system CUDA of its own major, up to the newest that it supports."""
    if cudnn.absent:
        return None
    if cuda.absent:
        return f"cuDNN {cudnn.version} as a system library needs a CUDA toolkit beside it"
    if major(cudnn.row["cuda"]) != major(cuda.version):
        return f"cuDNN {cudnn.version} ({cudnn.variant}) is not built for CUDA {minor(cuda.version)}"
    last = cudnn.row.get("cuda_last")
    if last and not at_least(last, minor(cuda.version)):
        return f"cuDNN {cudnn.version} supports CUDA up to {last}, not {minor(cuda.version)}"
    return None


@rule("cudnn-gpu", "cudnn", "gpus", sources=("S20",))
def cudnn_gpu(context: Context, cudnn: Cudnn, gpu: GpuModel) -> str | None:
    """cuDNN dropped what is older than Turing with 9.11."""
    if not cudnn.absent and not at_least(gpu.row["compute_capability"], cudnn.row["min_cc"]):
        return f"cuDNN {cudnn.version} dropped {gpu.version}: it begins with compute capability {cudnn.row['min_cc']}"
    return None


@rule("nccl-cuda", "nccl", "cuda", sources=("S22", "K1"))
def nccl_cuda(context: Context, nccl: Library, cuda: Toolkit) -> str | None:
    """System NCCL is one build per CUDA release; the build must not be newer than the toolkit, nor of another major."""
    if nccl.absent:
        return None
    if cuda.absent:
        return None
    build = nccl.row["cuda"]
    if major(build) != major(cuda.version) or not at_least(minor(cuda.version), build):
        return f"NCCL {nccl.version} (built for CUDA {build}) does not fit CUDA {minor(cuda.version)}"
    return None


@rule("python-os", "python", "os", sources=("S30", "E1", "U3", "D1"))
def python_os(context: Context, python: Python, os: System) -> str | None:
    """A distribution has some Pythons only; what it lacks is a standalone build."""
    if python.row["source"] != "distribution" or python.version in os.row["pythons"]:
        return None
    return f"{os.version} has Python {offered(os.row)} for environments, not {python.version}"


@rule(
    "ansible-core-python", "ansible_core", "os", sources=("S21",),
    hint="run the playbooks from a controller with ansible-core 2.16",
)  # fmt: skip
def ansible_core_python(context: Context, ansible_core: AnsibleCore, os: System) -> str | None:
    """Modules must run on the system's own Python: on EL 8 that ends with ansible-core 2.16."""
    row = context.tables.find("ansible_core", version=minor(ansible_core.version))
    if row is None or at_least(os.row["python"], row["target_python"][0]):
        return None
    return (
        f"ansible-core {minor(ansible_core.version)} does not run modules on Python {os.row['python']}, "
        f"the platform Python of {os.version}; ansible-core 2.16 is the last that does"
    )
