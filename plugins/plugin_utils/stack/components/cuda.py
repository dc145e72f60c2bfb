# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CUDA toolkit on the host, for what is compiled there or takes its libraries from it."""

from __future__ import annotations

import re

from ..component import Beside, Component
from ..facts import Compiler, GpuModel, System, has_compiler
from ..input_error import InputError
from ..keys import Key
from ..model import NONE, AnyCandidate, Candidate, Part, Question
from ..package import Package
from ..rows import CudaRow
from ..rule import Context, Doubt, Rules
from ..tables import Tables
from ..versions import at_least, major, matches, minor
from .driver.row import Driver

Toolkit = Candidate[CudaRow]
rule = Rules()


def _cuda(tables: Tables, question: Question) -> list[Toolkit]:
    """Toolkits at their newest update, older updates only when asked for; no toolkit at all when none is asked for."""
    constraint = question.constraints.get("cuda")
    found: list[Toolkit] = [] if constraint else [Candidate("cuda", NONE)]
    for row in reversed(tables.rows("cuda")):
        allowed = [update for update in reversed(row["updates"]) if matches(update, constraint or "latest")]
        found += [Candidate("cuda", update, row=row) for update in allowed[:1]]
    return found


@rule("cuda-driver-floor", "cuda", "driver", sources=("S1", "S2"))
def cuda_driver_floor(context: Context, cuda: Toolkit, driver: Driver) -> str | None:
    """Programs of a toolkit run from the driver floor of its major on; below it only with cuda-compat, where allowed."""
    if not _below_floor(context.tables, cuda, driver):
        return None
    if context.forward_compat and "cuda" in context.asked and forward_branch(cuda, driver):
        return None
    floor = context.tables.driver_floor(cuda.version)
    return f"CUDA {minor(cuda.version)} needs driver {floor} or newer, not {driver.version}"


def _below_floor(tables: Tables, cuda: AnyCandidate, driver: AnyCandidate) -> bool:
    return not cuda.absent and not at_least(driver.version, tables.driver_floor(cuda.version))


def forward_branch(cuda: Toolkit, driver: Driver) -> bool:
    """Return True if the cuda-compat package of a toolkit may stand on this driver branch."""
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
    seen = first or os.row.get("cuda_seen")
    if first and not at_least(number, first):
        return f"CUDA {number} was never published for {os.version}, whose first toolkit is {first}"
    if last and not at_least(last, number):
        return f"CUDA {number} is no longer published for {os.version}: its last toolkit is {last}"
    if seen and at_least(number, seen):
        return None
    return Doubt(f"whether CUDA {number} is published for {os.version}, whose first toolkit is not in the tables")


def compiler_reason(cuda: Toolkit, compiler: Compiler) -> str | None:
    """Return the reason why nvcc does not take the host's g++."""
    last = cuda.row["gcc_max"]
    if at_least(last, compiler.version):
        return None
    return f"nvcc of CUDA {minor(cuda.version)} takes g++ up to {last}, and {has_compiler(compiler)}"


@rule("cuda-compiler", "cuda", "compiler", sources=("H3", "H4"))
def cuda_compiler(context: Context, cuda: Toolkit, compiler: Compiler) -> str | None:
    """Refuse a toolkit that the declared g++ cannot be used with; one that the distribution's cannot be used with gives a warning."""
    return None if cuda.absent or compiler.variant else compiler_reason(cuda, compiler)


def _warnings(tables: Tables, question: Question, cuda: Toolkit, beside: Beside) -> list[str]:
    """Return the warnings of a too new compiler, and of cuda-compat: its package sets no search path (NVIDIA's CUDA Compatibility)."""
    reason = compiler_reason(cuda, question.compiler) if question.compiler else None
    found = [f"{reason}: give it an older one with -ccbin"] if reason else []
    driver = beside.get("driver")
    if driver and _below_floor(tables, cuda, driver):
        found.append(
            f"programs of CUDA {minor(cuda.version)} run on driver {driver.version} only with the libraries of cuda-compat, which is "
            f"installed, too: start them with LD_LIBRARY_PATH=/usr/local/cuda-{minor(cuda.version)}/compat"
        )
    return found


def _mistake(tables: Tables, question: Question) -> InputError | None:
    """Return the mistake that the compiler is not a version of one."""
    compiler = question.constraints.get("gcc")
    is_version = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", compiler or "0")
    return None if is_version else InputError("wrong_compiler", compiler)


KEYS = (
    Key(
        name="cuda",
        docs=("CUDA toolkit on the host; frameworks that bring their own libraries need none.",),
        sample='"12.4"',
        comment="only what builds against CUDA needs a toolkit on the host; PyTorch's wheels do not",
    ),
    Key(
        name="gcc",
        docs=(
            "Version of C(g++) on the host, where it is not the distribution's.",
            "Everything compiled is compiled with it; it is not installed.",
        ),
        sample='"12"',
        comment="where g++ on the host is not the distribution's; it is not installed",
        free=True,
        order=None,
        declares=True,
    ),
)


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    if "cuda" not in host:
        return {"cuda": None}
    cuda, number = host["cuda"], minor(host["cuda"].version)
    dashed = number.replace(".", "-")
    packages: list[Package] = [{"name": f"cuda-toolkit-{dashed}", "version": f"{cuda.version}-1"}]
    cudart = cuda.row.get("cudart", {}).get(cuda.version)
    if cudart:
        # Left alone these float to the newest toolkit, and take /usr/local/cuda with them.
        common = (f"cuda-toolkit-{dashed}", f"cuda-toolkit-{major(number)}", "cuda-toolkit")
        packages += [{"name": f"{name}-config-common", "version": f"{cudart}-1"} for name in common]
    driver = host.get("driver")
    if driver and _below_floor(tables, cuda, driver):
        packages.append({"name": f"cuda-compat-{dashed}", "version": None})
    held = ["cuda-toolkit*-config-common", f"cuda-*-{dashed}", f"lib*-{dashed}"]
    home = f"/usr/local/cuda-{number}"
    return {"cuda": {"version": cuda.version, "packages": packages, "home": home, "held": held}}


CUDA = Component(
    name="cuda",
    form=Toolkit,
    keys=KEYS,
    place="host",
    candidates=_cuda,
    rules=rule,
    system=("gcc",),
    warnings=_warnings,
    result=_result,
    mistake=_mistake,
    size={"cuda": 9000, "cpu": 9000},
)
