# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the frameworks of the Python environments start and see the GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..environments import extras
from ..stack.components import FRAMEWORKS, component
from .check import Check, check, compared, skipped, yes_no
from .coherence import LOOK
from .health import own_gpus

CATEGORY = "environment"
NO_GPU_COMPUTE = "no GPU computes on this host (verify_gpu_compute: false)"
# What to do.
ONE_MPI = "let PATH and the linker find the same one first"
OTHERS = "look for LD_LIBRARY_PATH and for packages that bring others"
IMPORT = "import it with /opt/allreduce/envs/{}/bin/python on the node; without that directory, site rebuilds it"
BUILT = ("frameworks", "controllers", "operations")
# What is imported of each framework.
MODULES = {name: component(name).module for name in FRAMEWORKS}


def checks(stack: Mapping, gpu_node: Mapping, probe: Mapping, gpu_compute: bool = True) -> Iterator[Check]:
    """Yield the checks of one node; gpu_compute: whether its GPUs are said to compute, see role verify."""
    for planned in stack.get("environments") or []:
        name = planned["name"]
        answer = (probe.get("environments") or {}).get(name)
        for framework in planned.get("frameworks") or {}:
            if framework in MODULES:
                yield imports(name, MODULES[framework], answer)
        for module in extras.modules(planned.get("requirements") or []):
            yield imports(name, module, answer)
            if module == "mpi4py":
                yield mpi(name, answer)
        if "pytorch" in (planned.get("frameworks") or {}):
            gpus = own_gpus(gpu_node)
            without = not gpu_compute and is_for_cuda(planned)
            yield without_compute(planned, gpus, answer) if without else cuda(planned, gpus, answer)
            if known_libraries(planned):
                yield libraries(planned, answer)
        if planned.get("build"):
            yield build(planned, answer)


def imports(name: str, module: str, answer: Mapping | None) -> Check:
    """Check that the framework starts in the environment's interpreter."""
    label, expected = f"{name}_{module}", f"{module} can be imported"
    found = (answer or {}).get(module)
    if found is None:
        why = (answer or {}).get("error") or "the environment was not asked"
        return compared(label, CATEGORY, expected, None, None, why, IMPORT.format(name))
    if found.get("error"):
        return compared(label, CATEGORY, expected, "cannot be imported", False, found["error"], IMPORT.format(name))
    return compared(label, CATEGORY, expected, f"{module} {found['version']}", True)


def mpi(name: str, answer: Mapping | None) -> Check:
    """Check that mpi4py loads the MPI whose mpirun starts it."""
    label, found = f"{name}_mpi", (answer or {}).get("mpi4py") or {}
    library, launcher = found.get("library"), found.get("launcher")
    if launcher is None and library:
        return skipped(label, CATEGORY, "the MPI of mpirun", "this node has no mpirun")
    if library is None:
        why = found.get("error") or "mpi4py could not be asked"
        return compared(label, CATEGORY, "the MPI of mpirun", None, None, why, IMPORT.format(name))
    agrees = _release(library) == _release(str(launcher))
    return compared(
        label,
        CATEGORY,
        launcher,
        library,
        agrees,
        "mpi4py loads an MPI other than the one whose mpirun starts it",
        ONE_MPI,
    )


def _release(text: str) -> str | None:
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found[0] if found else None


def build(planned: Mapping, answer: Mapping | None) -> Check:
    """Check that Horovod was compiled for the planned frameworks, controllers and operations, as horovodrun --check-build tells.

    Where it has NCCL, what it also has for processors is not a difference.
    """
    wanted = {name: [MODULES.get(one, one) for one in planned["build"].get(name) or []] for name in BUILT}
    label, found = f"{planned['name']}_horovod_build", (answer or {}).get("horovod") or {}
    have = found.get("build")
    fix = IMPORT.format(planned["name"])
    if have is None:
        why = found.get("error") or "Horovod could not be asked"
        return compared(label, CATEGORY, _built(wanted), None, None, why, fix)
    agrees = set(wanted["operations"]) <= set(have["operations"]) and all(
        set(wanted[name]) == set(have[name]) for name in ("frameworks", "controllers")
    )
    reason = "Horovod does not load as planned: it was compiled differently, or lacks a package that it imports"
    return compared(label, CATEGORY, _built(wanted), _built(have), agrees, reason, fix)


def _built(parts: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{name} {', '.join(sorted(parts[name])) or 'none'}" for name in BUILT)


def known_libraries(planned: Mapping) -> dict[str, str]:
    """Return the versions that the plan knows of what PyTorch's build brings."""
    return {name: version for name, version in (planned.get("libraries") or {}).items() if version}


def libraries(planned: Mapping, answer: Mapping | None) -> Check:
    """Check that PyTorch was built for the planned CUDA and loads the planned cuDNN and NCCL."""
    known, found = known_libraries(planned), (answer or {}).get("torch") or {}
    wanted = {name: version_parts(name, version) for name, version in known.items()}
    label, expected = f"{planned['name']}_libraries", _named(wanted)
    have = found.get("libraries")
    if have is None:
        why = found.get("error") or "PyTorch could not be asked"
        return compared(label, CATEGORY, expected, None, None, why, IMPORT.format(planned["name"]))
    measured = {name: version_parts(name, have.get(name)) for name in known}
    return compared(
        label,
        CATEGORY,
        expected,
        _named(measured),
        measured == wanted,
        "PyTorch's libraries are not those of the plan",
        OTHERS,
    )


def version_parts(name: str, version: object) -> str | None:
    """Return a version as PyTorch tells it: CUDA 12.1, cuDNN 8.9.2 (which it numbers 8902, from 9 on 90100), NCCL 2.20.5."""
    if isinstance(version, int):  # of cuDNN: major, then two digits of minor and of patch, of an 8 one digit of minor
        unit = 10000 if version >= 90000 else 1000
        return f"{version // unit}.{version % unit // 100}.{version % 100}"
    parts = [str(part) for part in version] if isinstance(version, (list, tuple)) else str(version or "").split(".")
    return ".".join(parts[: 2 if name == "cuda" else 3]) or None


def _named(versions: Mapping[str, str | None]) -> str:
    names = {"cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}
    return ", ".join(f"{names[name]} {version or 'none'}" for name, version in versions.items())


def is_for_cuda(planned: Mapping) -> bool:
    return planned.get("accelerator") == "cuda"


def without_compute(planned: Mapping, gpus: int, answer: Mapping | None) -> Check:
    """Skip what only a GPU that computes can answer; one that computes all the same contradicts who said that none does."""
    label, expected = f"{planned['name']}_cuda", f"yes, {gpus} GPUs"
    if ((answer or {}).get("torch") or {}).get("cuda_available"):
        return check(
            label, CATEGORY, "no", "yes", "failed", "a GPU computes on this host", "leave out verify_gpu_compute: false"
        )
    return skipped(label, CATEGORY, expected, NO_GPU_COMPUTE)


def cuda(planned: Mapping, gpus: int, answer: Mapping | None) -> Check:
    """Check that PyTorch sees the GPUs where the environment is built for them, and none elsewhere."""
    wanted = is_for_cuda(planned)
    label, expected = f"{planned['name']}_cuda", f"yes, {gpus} GPUs" if wanted else "no"
    found = (answer or {}).get("torch") or {}
    available = found.get("cuda_available")
    if available is None:
        why = found.get("error") or "PyTorch could not be asked"
        return compared(label, CATEGORY, expected, None, None, why, IMPORT.format(planned["name"]))
    count = found.get("device_count") or 0
    measured = f"yes, {count} GPUs" if available else yes_no(available)
    agrees = available == wanted and (not wanted or count == gpus)
    return compared(
        label,
        CATEGORY,
        expected,
        measured,
        agrees,
        "torch.cuda.is_available() does not match the plan",
        LOOK,
    )
