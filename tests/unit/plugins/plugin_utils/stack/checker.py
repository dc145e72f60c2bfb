# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An independent judge of a finished stack: reads the tables itself and shares no code with the resolver.

check(stack, kernels) returns what is wrong as sentences; [] for a good stack. The kernels are those of the host.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from judges import judges  # noqa: E402 (a neighbour, found through the line above)

DATA = Path(__file__).resolve().parents[5] / "data" / "stack"


def table(name):
    with (DATA / f"{name}.yml").open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


CUDA = {row["version"]: row for row in table("cuda")["rows"]}
BRANCHES = {row["branch"]: row for row in table("drivers")["rows"]}
GPUS = {row["model"]: row for row in table("gpus")["rows"]}
TORCH = {row["version"]: row for row in table("torch")["rows"]}
AARCH64 = table("torch")["aarch64_sass"]
TENSORFLOW = {release: row for row in table("tensorflow")["rows"] for release in row["releases"]}
CUPY = {release: row for row in table("cupy")["rows"] for releases in row["wheels"].values() for release in releases}
HOROVOD = {row["version"]: row for row in table("horovod")["rows"]}
CXX = table("horovod")["cxx_standards"]
CUDNN = {(row["version"], row["cuda"]): row for row in table("cudnn")["rows"]}
WHEELS = {(one, row["package"]) for row in table("nvidia_wheels")["rows"] for one in row["releases"]}
NCCL = table("nccl")["rows"]
MIG = {model: row["profiles"] for row in table("mig")["rows"] for model in row["models"]}
KERNELS = table("kernels")["rows"]
ARCHIVES = {(row["id"], row["version"], row["branch"]) for row in table("archives")["rows"]}
FLOORS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}


def first_cuda():
    """The oldest toolkit for each major of compute capabilities."""
    found = {}
    for row in table("architectures")["rows"]:
        found.setdefault(row["compute_capability"].split(".")[0], []).append(n(row["min_cuda"]))
    return {number: min(versions) for number, versions in found.items()}


def distributions():
    rows = table("distros")["rows"]
    full = {(row["id"], row["version"]): row for row in rows}
    return {key: {**full[row["like"], row["version"]], **row} if "like" in row else row for key, row in full.items()}


DISTROS = distributions()


def n(text):
    """A dotted number as a tuple of integers, padded so that 12.0 and 12.0.0 are equal."""
    parts = [int(part) for part in str(text).split(".") if part.isdigit()]
    return tuple(parts + [0] * (5 - len(parts)))


FIRST_CUDA = first_cuda()


def mm(text):
    return ".".join(text.split(".")[:2])


def release_driver(cuda):
    row = CUDA.get(mm(cuda))
    if row is None:
        return "0"
    return row["updates"].get(cuda) or [*filter(None, row["updates"].values()), row["min_driver"]][0]


def floor(cuda):
    """10.2 is older than the tables: nothing is claimed."""
    return "0" if mm(cuda) not in CUDA else min(FLOORS[cuda.split(".")[0]], release_driver(cuda), key=n)


def runs(capability, sass, ptx, cuda):
    """native, ptx or nothing; where nobody looked, a wheel runs what its toolkit could have known."""
    if sass is None and ptx is None:
        return "native" if n(mm(cuda)) >= FIRST_CUDA[capability.split(".")[0]] else None
    for one in sass or []:
        if one.split(".")[0] == capability.split(".")[0] and n(one) <= n(capability):
            return "native"
    return "ptx" if ptx and n(ptx) <= n(capability) else None


def asked(stack, name):
    """What was asked for by a key of the request."""
    return stack["inputs"]["request"].get(name)


def compiler(stack):
    """The g++ that compiles: what the request declares, else the distribution's."""
    return asked(stack, "gcc") or DISTROS[stack["os"]["id"], stack["os"]["version"]]["gcc"]


def check(stack, kernels=()):
    kernels = [*kernels, *filter(None, [asked(stack, "kernel")])]
    return [
        *check_host(stack),
        *(text for kernel in kernels for text in check_kernel(stack["driver"], kernel)),
        *(
            f"{gpu['model']}: no such part of it"
            for gpu in stack["gpus"]
            if not has_parts(gpu["model"], asked(stack, "mig"))
        ),
        *check_libraries(stack),
        *(text for name, judge in judges().items() if stack.get(name) for text in judge.check_host(stack)),
        *(text for one in stack["environments"] for text in check_interpreter(stack["os"], one)),
        *(text for one in stack["environments"] for text in check_environment(stack, one)),
        *(text for one in stack["environments"] for text in check_aarch64(stack, one)),
    ]


def check_host(stack):
    driver, os = stack["driver"], DISTROS[stack["os"]["id"], stack["os"]["version"]]
    if driver is None:
        return ["a GPU host without driver"] if stack["gpus"] else []
    if driver["source"] == "vendor":
        return [f"{name} of a driver that is left" for name in ("packages", "held", "components") if driver[name]]
    wrong = []
    branch = BRANCHES[int(driver["branch"])]
    if stack["os"]["arch"] == "aarch64" and branch["branch"] < 470:
        wrong.append("no packages for aarch64")
    if driver["version"].split(".")[0] != driver["branch"]:
        wrong.append("driver version of another branch")
    if driver["kernel_modules"] not in branch["kernel_modules"]:
        wrong.append("the branch has no such kernel modules")
    if driver["source"] == "nvidia":
        if not (os.get("driver_first") or 0) <= branch["branch"] <= os.get("driver_last", 10**6):
            wrong.append("branch not in the distribution's repository")
        if not stack["repository"] or stack["repository"]["slug"] != os["repository"]:
            wrong.append("no repository for the driver")
    wrong += [text for gpu in stack["gpus"] for text in check_gpu(gpu, driver)]
    manager = stack["fabric_manager"]
    if manager and manager["version"] != driver["version"]:
        wrong.append("fabric manager differs from the driver")
    if manager and not any("fabric" in package["name"] for package in manager["packages"]):
        wrong.append("no package of the fabric manager")
    if driver["source"] == "distribution" and (os["id"], os["version"], branch["branch"]) not in ARCHIVES:
        wrong.append("branch not in the distribution's archive")
    return wrong


def is_vgpu(model):
    """A part of a board: A40-8Q, or A100-1-5C of a MIG instance; where it has no name yet, the board's with (vGPU)."""
    return model.endswith("(vGPU)") or re.search(r"-\d+[ABCQ](ME|NOME)?$", model) is not None


def has_parts(model, constraint):
    """Whether a model with a row can be partitioned as asked; of others nothing is claimed."""
    if constraint is None or model not in GPUS:
        return not (constraint and is_vgpu(model))
    return model in MIG and (constraint == "enabled" or MIG[model] is None or constraint in MIG[model])


def check_kernel(driver, kernel):
    """Distributions and vendors patch their own; of NVIDIA's, a release does not build where it, or a newer one, was seen to fail."""
    if driver is None or driver["source"] not in ("nvidia", "runfile"):
        return []
    here, wrong = kernel_number(kernel), []
    for row in KERNELS:
        ended = int(driver["branch"]) < row["branch"] and "older" in row
        seen = ended or (driver["branch"] == str(row["branch"]) and n(driver["version"]) <= n(row["driver"]))
        if seen and driver["kernel_modules"] in row["kernel_modules"] and row.get("contains", "") in kernel:
            wrong += [f"does not build on {kernel}"] if here >= kernel_number(row["kernel"]) else []
    return wrong


def kernel_number(release):
    """Digits up to the first letter: (6, 8, 0, 84) of 6.8.0-84-generic."""
    return tuple(int(part) for part in re.split(r"[a-zA-Z_+]", release)[0].replace("-", ".").split(".") if part)


def check_gpu(gpu, driver):
    row, wrong = GPUS.get(gpu["model"]), []
    if driver["source"] != "runfile" and is_vgpu(gpu["model"]):
        wrong.append("a vGPU's guest driver is in no package repository")
    if row is None:
        return wrong
    if driver["kernel_modules"] not in row["kernel_modules"]:
        wrong.append(f"{gpu['model']}: wrong kernel modules")
    if driver["source"] == "distribution" and gpu["model"] in ("B200", "B300") and gpu["count"] >= 8:
        wrong.append(f"{gpu['model']}: nvlsm is not in a distribution's archive")
    if int(driver["branch"]) > row.get("max_driver_branch", 10_000):
        wrong.append(f"{gpu['model']}: branch too new")
    if n(driver["version"]) < n(row["min_driver"] or release_driver(row["min_cuda"])):
        wrong.append(f"{gpu['model']}: driver too old")
    return wrong


def forward(stack, row):
    eligible = all(GPUS.get(gpu["model"], {}).get("forward_compat") for gpu in stack["gpus"])
    return eligible and int(stack["driver"]["branch"]) in row["forward_compat_branches"]


def check_toolkit(stack, cuda, driver):
    wrong, os, row = [], DISTROS[stack["os"]["id"], stack["os"]["version"]], CUDA[mm(cuda["version"])]
    if os["cuda_first"] and n(row["version"]) < n(os["cuda_first"]):
        wrong.append("toolkit older than the repository")
    if "cuda_last" in os and n(row["version"]) > n(os["cuda_last"]):
        wrong.append("toolkit newer than the repository")
    if asked(stack, "gcc") and n(asked(stack, "gcc"))[0] > int(row["gcc_max"]):
        wrong.append("nvcc does not take the declared compiler")
    if driver and n(driver["version"]) < n(floor(cuda["version"])) and not forward(stack, row):
        wrong.append("driver below the toolkit's floor")
    for gpu in stack["gpus"]:
        if n(gpu["compute_capability"]) < n(row["min_cc"]):
            wrong.append("toolkit dropped this GPU")
    return wrong


def check_libraries(stack):
    cuda = stack["cuda"]
    wrong = check_toolkit(stack, cuda, stack["driver"]) if cuda else []
    if stack["cudnn"]:
        row = cudnn_row(stack["cudnn"]["version"], stack["cudnn"]["cuda"])
        if not cuda or row["cuda"].split(".")[0] != cuda["version"].split(".")[0]:
            wrong.append("cuDNN of another CUDA major")
        if any(n(gpu["compute_capability"]) < n(row["min_cc"]) for gpu in stack["gpus"]):
            wrong.append("cuDNN dropped this GPU")
    return wrong + (check_nccl(stack) if stack["nccl"] else [])


def cudnn_row(release, cuda):
    """A build that was seen in a repository; else one whose wheel is released: with code for Maxwell and newer, or Turing and newer."""
    if (release, cuda) in CUDNN:
        return CUDNN[release, cuda]
    assert (release, f"nvidia-cudnn-cu{cuda}") in WHEELS, f"no cuDNN {release} for CUDA {cuda}"
    return {"cuda": cuda, "min_cc": "7.5" if cuda == "13" or n(release) >= n("9.11") else "5.0"}


def check_nccl(stack):
    """Built for the toolkit's major, and not for a newer minor where the repository has another build; without a toolkit the driver runs it."""
    build, driver, slug = (
        stack["nccl"]["cuda"],
        stack["driver"],
        DISTROS[stack["os"]["id"], stack["os"]["version"]]["repository"],
    )
    major = build.split(".")[0]
    if any(n(gpu["compute_capability"]) < n({"11": "3.5", "12": "5.0"}.get(major, "7.5")) for gpu in stack["gpus"]):
        return ["NCCL built with a CUDA that dropped this GPU"]
    if stack["cuda"] is None:
        return ["driver too old for NCCL"] if driver and n(driver["version"]) < n(FLOORS[major]) else []
    if major != stack["cuda"]["version"].split(".")[0]:
        return ["NCCL built for another CUDA"]
    builds = [row["cuda"] for row in NCCL if row["version"] == stack["nccl"]["version"] and slug in row["repositories"]]
    older = [one for one in builds if one.split(".")[0] == major and n(one) <= n(mm(stack["cuda"]["version"]))]
    return ["NCCL built for a newer CUDA than need be"] if older and build not in older else []


def check_environment(stack, environment):
    wrong, frameworks = [], environment["frameworks"]
    cuda_majors = set()
    if "pytorch" in frameworks:
        wrong += check_torch(stack, environment, cuda_majors)
    if "tensorflow" in frameworks:
        wrong += check_tensorflow(stack, environment, cuda_majors)
    if "cupy" in frameworks:
        row = CUPY[frameworks["cupy"]]
        requirement = next(one for one in environment["requirements"] if one.startswith("cupy-cuda"))
        major = re.match(r"cupy-cuda(\d+)x", requirement)[1]
        if stack["gpus"]:
            cuda_majors.add(major)
        if environment["python"] not in row["python"]:
            wrong.append("CuPy has no wheel for this Python")
        if stack["driver"] and n(stack["driver"]["version"]) < n(FLOORS[major]):
            wrong.append("driver too old for CuPy")
        wrong += check_cupy(stack, frameworks, row, major) + check_toolkit_major(stack, major, "CuPy")
    for name, judge in judges().items():
        wrong += judge.check(stack, environment, cuda_majors) if name in frameworks else []
    if "horovod" in frameworks:
        wrong += check_horovod(stack, environment)
    old = n(frameworks.get("pytorch", "99")) < n("2.3") or n(frameworks.get("tensorflow", "99")) < n("2.12")
    if ("numpy<2" in environment["requirements"]) is not old:
        wrong.append("NumPy of another major than the wheels are compiled for")
    if {"pytorch", "tensorflow"} <= set(frameworks) and stack["gpus"]:
        wrong += check_pins(environment)
    if len(cuda_majors) > 1:
        wrong.append(f"CUDA majors {sorted(cuda_majors)} in one environment")
    return wrong


def check_interpreter(os, environment):
    """The distribution's own by its packages; standalone builds exist from 3.8 on; what is there has its place."""
    interpreter, number = environment["interpreter"], environment["python"]
    offered = DISTROS[os["id"], os["version"]]["pythons"]
    if interpreter["source"] == "distribution":
        right = number in offered and interpreter["packages"] == offered[number]
        return (
            []
            if right and interpreter["path"] == f"/usr/bin/python{number}"
            else ["the distribution lacks this Python"]
        )
    if interpreter["source"] == "standalone":
        right = interpreter["path"] is None and not interpreter["packages"] and n("3.8") <= n(number) <= n("3.15")
        return [] if right else ["no such standalone build"]
    if interpreter["source"] == "conda":
        return [] if interpreter["path"] is None and not interpreter["packages"] else ["conda's Python has a place"]
    return (
        [] if interpreter["path"].startswith("/") and not interpreter["packages"] else ["the interpreter has no place"]
    )


def check_aarch64(stack, environment):
    frameworks, wrong = environment["frameworks"], []
    if stack["os"]["arch"] == "aarch64" and "tensorflow" in frameworks and environment["accelerator"] == "cuda":
        wrong.append("TensorFlow has no CUDA for aarch64")
    if stack["os"]["arch"] == "aarch64" and "cupy" in frameworks and n(frameworks["cupy"]) < n("12.0"):
        wrong.append("CuPy has no wheels for aarch64")
    return wrong


def check_toolkit_major(stack, major, name):
    """What finds the toolkit of the host is for its CUDA, or the plan warns of that toolkit."""
    toolkit = mm(stack["cuda"]["version"]) if stack["cuda"] else None
    if (
        toolkit is None
        or toolkit.split(".", maxsplit=1)[0] == major
        or any(f"CUDA {toolkit}" in one for one in stack["warnings"])
    ):
        return []
    return [f"{name} is for CUDA {major}, the host has the toolkit of {toolkit}"]


def check_cupy(stack, frameworks, row, major):
    wrong = []
    for gpu in stack["gpus"]:
        capability = n(gpu["compute_capability"])
        if not n(row["min_cc"] or "0") <= capability <= n(row.get("max_cc") or "99"):
            wrong.append("CuPy does not support this GPU")
        if capability < n({"11": "3.5", "12": "5.0"}.get(major, "7.5")):
            wrong.append("CuPy compiles with a CUDA that dropped this GPU")
    if row["numpy"].startswith(">=2") and n(frameworks.get("tensorflow", "99")) < n("2.18"):
        wrong.append("CuPy needs NumPy 2, TensorFlow an older one")
    if row["numpy"].startswith(">=2") and n(frameworks.get("pytorch", "99")) < n("2.3"):
        wrong.append("CuPy needs NumPy 2, PyTorch an older one")
    return wrong


def check_pins(environment):
    """Both bring nvidia-* wheels: exact pins need the same CUDA release, ranges must hold PyTorch's versions."""
    release = environment["frameworks"]["pytorch"]
    row, tag = TENSORFLOW[environment["frameworks"]["tensorflow"]], tag_of(environment)
    carries = n(release) < n("1.13") or (tag == "cu118" and n(release) < n("2.1"))  # its libraries in the wheel itself
    if tag == "cpu" or not row.get("pins") or carries:
        return []
    build = next(one for one in TORCH[release]["builds"] if one["tag"] == tag)
    if not row["pins"]["nccl-cu" + row["cuda"].split(".")[0]].startswith(">="):
        return [] if mm(build["cuda"]) == row["cuda"] else ["exact pins of two CUDA releases"]
    wrong = []
    for library in ("cudnn", "nccl"):
        low, high = row["pins"][f"{library}-cu12"].split(",")
        if build[library] and not n(low[2:]) <= n(build[library]) < n(high[1:]):
            wrong.append(f"{library} outside of TensorFlow's range")
    return wrong


def check_cudnn_limit(environment, cuda, wanted):
    """cuDNN 9.11 dropped what is older than Turing: the environment keeps the one before it, which the range must allow."""
    wrong = (
        [] if f"nvidia-cudnn-cu{cuda}<9.11" in environment["requirements"] else ["a cuDNN without code for this GPU"]
    )
    return wrong + (["no cuDNN for this GPU"] if n(wanted.split(",")[0].lstrip(">=")) >= n("9.11") else [])


def tag_of(environment):
    """The build of PyTorch: of its own index, or the one that the general package index has."""
    if environment["index"]:
        return environment["index"]["name"]
    return next(one["tag"] for one in TORCH[environment["frameworks"]["pytorch"]]["builds"] if one.get("default"))


def check_torch_libraries(stack, environment, build):
    """What is said of the wheel is what the tables say; on aarch64 the general package index had CPU builds until 2.10."""
    release, libraries = environment["frameworks"]["pytorch"], environment["libraries"]
    if build["tag"] == "cpu":
        return [] if libraries is None else ["libraries of a build without CUDA"]
    known = {name: None if name in build.get("unverified", []) else build[name] for name in ("cuda", "cudnn", "nccl")}
    wrong = [] if libraries == known else ["other libraries than the build's"]
    if stack["os"]["arch"] == "aarch64" and not environment["index"] and n(release) < n("2.11"):
        wrong.append("no CUDA in this build for aarch64")
    return wrong


def check_torch(stack, environment, cuda_majors):
    row, tag = TORCH[environment["frameworks"]["pytorch"]], tag_of(environment)
    build = next((one for one in row["builds"] if one["tag"] == tag), None)
    if build is None:
        return ["PyTorch has no such build"]
    wrong = [] if environment["python"] in row["python"] else ["PyTorch has no wheel for this Python"]
    wrong += check_torch_libraries(stack, environment, build)
    if stack["os"]["arch"] == "aarch64" and tag != "cpu" and tag not in AARCH64:
        wrong.append("PyTorch has no such build for aarch64")
    glibc = DISTROS[stack["os"]["id"], stack["os"]["version"]]["glibc"]
    if glibc and row["glibc"] and n(glibc) < n(row["glibc"]):
        wrong.append("glibc too old for PyTorch")
    if tag == "cpu":
        return wrong
    cuda_majors.add(build["cuda"].split(".")[0])
    driver = stack["driver"]
    sass = AARCH64.get(tag, []) if stack["os"]["arch"] == "aarch64" else build["sass"]
    for gpu in stack["gpus"]:
        if n(build["cudnn"] or "0") >= n("9.11") and n(gpu["compute_capability"]) < n("7.5"):
            wrong.append("PyTorch's cuDNN holds no code for this GPU")
        how = runs(gpu["compute_capability"], sass, build.get("ptx"), build["cuda"])
        if how is None or (how == "ptx" and n(driver["version"]) < n(release_driver(build["cuda"]))):
            wrong.append("PyTorch holds no code for this GPU")
    if driver and n(driver["version"]) < n(floor(build["cuda"])):
        wrong.append("driver too old for PyTorch")
    return wrong


def check_tensorflow(stack, environment, cuda_majors):
    release = environment["frameworks"]["tensorflow"]
    row, driver = TENSORFLOW[release], stack["driver"]
    wrong = [] if environment["python"] in row["python"] else ["TensorFlow has no wheel for this Python"]
    glibc = DISTROS[stack["os"]["id"], stack["os"]["version"]]["glibc"]
    if glibc and n(glibc) < n(row["glibc"]):
        wrong.append("glibc too old for TensorFlow")
    torch = environment["frameworks"].get("pytorch")
    if torch and row["version"] == "2.13" and n(torch) >= n("2.2"):
        wrong.append("typing-extensions clash")
    if not stack["gpus"]:
        return wrong
    cuda_majors.add(row["cuda"].split(".")[0])
    if n(driver["version"]) < n(floor(row["cuda"])):
        wrong.append("driver too old for TensorFlow")
    for gpu in stack["gpus"]:
        how = runs(gpu["compute_capability"], row["sass"], row["ptx"], row["cuda"])
        if how is None or (how == "ptx" and n(driver["version"]) < n(release_driver(row["cuda"]))):
            wrong.append("TensorFlow holds no code for this GPU")
        if row["and_cuda"] and n(gpu["compute_capability"]) < n("7.5"):
            wanted = row["pins"]["cudnn-cu" + row["cuda"].split(".")[0]]
            wrong += check_cudnn_limit(environment, "12", wanted) if wanted[0] == ">" else []
        if gpu["compute_capability"].startswith("12."):
            wrong.append("TensorFlow's PTX does not compile for this GPU")
    if not row["and_cuda"]:
        if not stack["cuda"] or mm(stack["cuda"]["version"]) != row["cuda"]:
            wrong.append("TensorFlow lacks its CUDA on the host")
        have = stack["cudnn"]["version"] if stack["cudnn"] else "0"
        if have.split(".")[0] != row["cudnn"].split(".")[0] or n(have) < n(row["cudnn"]):
            wrong.append("TensorFlow lacks its cuDNN on the host")
    return wrong


def on_gpus(stack, environment):
    """Horovod computes where PyTorch does, else where the host can."""
    return bool(stack["gpus"]) and not ("pytorch" in environment["frameworks"] and tag_of(environment) == "cpu")


def check_standard(stack, environment, row, gcc):
    """PyTorch's headers have a C++ standard that Horovod and the compiler have to reach."""
    torch, wrong = n(environment["frameworks"]["pytorch"]), []
    if torch >= n(row["torch_below"]["cuda" if on_gpus(stack, environment) else "cpu"]):
        wrong.append("Horovod does not build with this PyTorch")
    both = "tensorflow" in environment["frameworks"] and on_gpus(stack, environment)
    if both and torch >= n(row["torch_below_with_tensorflow"]):
        wrong.append("Horovod does not build with this PyTorch and TensorFlow")
    needed = max((one for one in CXX if torch >= n(one["torch"])), key=lambda one: n(one["torch"]))
    if gcc and int(gcc) < int(needed["gcc_min"]):
        wrong.append("compiler too old for PyTorch's headers")
    if environment["build"]["cxx_standard"] < needed["standard"]:
        wrong.append("Horovod's C++ is older than that of PyTorch's headers")
    return wrong


def check_horovod(stack, environment):
    frameworks, wrong = environment["frameworks"], []
    row = HOROVOD[frameworks["horovod"]]
    gcc = compiler(stack)
    if "pytorch" in frameworks:
        wrong += check_standard(stack, environment, row, gcc)
    if n(environment["python"]) >= n(row["python_below"]):
        wrong.append("Horovod is not compiled with this Python")
    if "tensorflow" in frameworks and n(frameworks["tensorflow"]) >= n(row["tensorflow_below"]):
        wrong.append("Horovod breaks with this TensorFlow")
    if "tensorflow" in frameworks and stack["gpus"] and not on_gpus(stack, environment):
        wrong.append("Horovod for CPUs beside a TensorFlow for GPUs")
    if gcc and int(gcc) < int(row["gcc_min"]):
        wrong.append("compiler too old for Horovod")
    if gcc and int(gcc) > int(row["gcc_max"]):
        wrong.append("compiler too new for Horovod")
    if environment["build"]["operations"] != (["nccl"] if on_gpus(stack, environment) else ["gloo"]):
        wrong.append("Horovod's operations are not for what its frameworks compute on")
    return wrong + (check_horovod_on_gpus(stack, environment, gcc) if on_gpus(stack, environment) else [])


def check_horovod_on_gpus(stack, environment, gcc):
    """Its kernels are compiled with the CUDA of its frameworks, and with a compiler that nvcc takes."""
    frameworks, wrong = environment["frameworks"], []
    if not stack["nccl"] or not stack["cuda"]:
        return ["Horovod lacks toolkit or NCCL"]
    toolkit = CUDA[mm(stack["cuda"]["version"])]
    if gcc and int(gcc) > int(toolkit["gcc_max"]):
        wrong.append("the distribution's compiler is too new for nvcc")
    if "pytorch" in frameworks:
        tag = tag_of(environment)
        build = next(one for one in TORCH[frameworks["pytorch"]]["builds"] if one["tag"] == tag)
        if mm(build.get("cuda", "none")) != mm(stack["cuda"]["version"]):
            wrong.append("Horovod's CUDA is not PyTorch's")
    if "tensorflow" in frameworks and TENSORFLOW[frameworks["tensorflow"]]["cuda"] != mm(stack["cuda"]["version"]):
        wrong.append("Horovod's CUDA is not TensorFlow's")
    return wrong
