# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate stacks with states of nodes: exactly as planned, and mutated in ways of which each is known to matter or not.

Each part of a state is mutated at most once, so that no mutation mends what another broke.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, Package, Stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD, PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packaged import Desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from hypothesis import strategies as st
from packaging.requirements import Requirement

State = dict[str, Any]
# Mutate a state; return whether the node is not as planned now.
Mutation = Callable[[st.DrawFn, Stack, State], bool]

QUESTIONS = [
    {"os": system, "gpus": gpus, "request": request}
    for system in ("debian 12", "debian 13", "ubuntu 22.04", "ubuntu 24.04", "rocky 8", "rocky 9")
    for gpus in ([], ["A40"], ["H100 SXM5 80GB"] * 8)
    for request in (
        {},
        {"driver": "535"},
        {"driver": "580", "cuda": "12", "cudnn": "latest"},
        {"driver_source": "distribution"},
        {"driver_source": "runfile"},
        {"cuda": "latest", "cudnn": "latest", "nccl": "latest"},
        {"tensorflow": "latest"},
        {"driver": "550", "pytorch": "none"},
        {"driver": "535", "dcgm": "latest", "pytorch": "none"},
        {"container_toolkit": "1.19", "pytorch": "none"},
        {"container_toolkit": "1.17", "pytorch": "none"},
    )
    if gpus or not {"dcgm", "container_toolkit"} & set(request)
]
# Kernels by release, oldest first; the middle one runs.
OLD, RUNNING, NEWEST = KERNELS = ("6.1.0-37-amd64", "6.1.0-39-amd64", "6.1.0-40-amd64")
# What lies on nodes and concerns no plan.
BYSTANDERS = {"nvidia-container-toolkit": "1.19.0-1", "libnvidia-container1": "1.19.0-1", "bash": "5.2.15-2"}
TRANSITIVE = {"filelock": "3.20.0", "typing-extensions": "4.15.0"}
ARCHIVE = {"uri": "http://archive.example.org/debian", "suite": "stable", "signed_by": None}
ON, OFF, UNKNOWN = ({"enabled": value, "active": value} for value in (True, False, None))


@functools.cache
def _answer(question: str) -> dict[str, Any] | None:
    return resolve(json.loads(question))["stack"]


def stacks() -> st.SearchStrategy[dict[str, Any]]:
    """Return real stacks: the resolver's answers to QUESTIONS, less those that it refuses."""
    answers = st.sampled_from(QUESTIONS).map(lambda question: _answer(json.dumps(question)))
    return answers.filter(lambda stack: stack is not None).map(copy.deepcopy)


def planned(stack: dict[str, Any]) -> Stack:
    """Return a stack as a value, less the driver of a node without a GPU, which gets none."""
    parsed = parse(Stack, {**stack, "driver": stack["driver"] if stack["gpus"] else None})
    return parse(Stack, {**stack, "driver": None}) if parsed.driver is None else parsed


def as_planned(stack: dict[str, Any]) -> State:
    """Return the fact gpu_node_state of a node that is exactly as planned, and has more than was planned."""
    plan = planned(stack)
    driver, version = plan.driver, _driver_version(plan)
    has_driver = driver is not None
    apt, toolkit = plan.os.family == "debian", plan.container_toolkit
    refresh = toolkit is not None and toolkit.cdi_refresh
    return {
        "kernel": {
            "running": RUNNING, "installed": list(KERNELS), "headers": list(KERNELS), "newest": NEWEST,
            "next_boot": None, "driver_modules": {one: has_driver and one != OLD for one in KERNELS},
        },
        "container": False,
        "driver_owner": None,
        "package_manager": "apt" if apt else "dnf",
        "packages": {**BYSTANDERS, **{package.name: _version(package) for package in all_packages(plan)}},
        "leftover_packages": {"exim4-config": "4.96-15"} if apt else {},
        "package_manager_interrupted": False,
        "package_manager_holder": None,
        "apt_components": ["main", *(driver.components if driver else ())] if apt else None,
        "apt_mirrors": [{**ARCHIVE, "components": ["main", *(driver.components if driver else ())]}] if apt else None,
        "dkms": [_build("zfs", "2.1.11", RUNNING), *_builds(plan, {RUNNING: version, NEWEST: version})],
        "driver": {"loaded": version, "installed": version},
        "services": {
            "chrony": ON if apt else OFF, "chronyd": ON, "nvidia-persistenced": ON if has_driver else OFF,
            "nvidia-fabricmanager": ON if plan.fabric_manager else OFF, "nvidia-imex": ON if plan.imex else OFF,
            "nvidia-cdi-refresh.path": ON if refresh else OFF, "nvidia-cdi-refresh.service": ON if refresh else OFF,
            "allreduce-gpu-settings": OFF, "allreduce-health.timer": OFF,
        },
        "cdi": {toolkit.cdi: version} if toolkit else {},
        "kernel_modules": {"ib_umad": {"loaded": True, "at_boot": True}},
        "disk_free_mib": {"/": 20480, "/opt": 20480, "/var": 20480},
        "environments": {environment.name: _environment(environment, plan) for environment in plan.environments},
        "reboot_pending": None,
        "reboot_recorded": False,
    }  # fmt: skip


def all_packages(plan: Stack) -> list[Package]:
    """Return the packages of every component."""
    pinning = plan.driver.pinning_packages if plan.driver else ()
    components = [getattr(plan, name) for name in (one.name for one in PACKAGED)]
    return [*pinning, *(package for component in components if component for package in component.packages)]


def _version(package: Package) -> str:
    """Return a version that the plan's pattern fits."""
    return re.sub(r"\[(\d)\d*\]", r"\1", package.version or "1.0-1").replace("*", "1")


def _driver_version(plan: Stack) -> str | None:
    """Return the version that the archive has: one of the branch where it decides which."""
    driver = plan.driver
    if driver is None:
        return None
    return f"{driver.branch}.261.03" if driver.source == "distribution" else driver.version


def _build(module: str, version: str, kernel: str | None, status: str = "installed") -> dict[str, Any]:
    return {"module": module, "version": version, "kernel": kernel, "arch": kernel and "x86_64", "status": status}


def _builds(plan: Stack, versions: dict[str, str | None]) -> list[dict[str, Any]]:
    """Return the builds of the driver's module: {kernel: version}, and the source that its packages brought."""
    module = plan.driver.dkms_module if plan.driver else None
    if module is None:
        return []
    source = _build(module, str(_driver_version(plan)), None, "added")
    return [source, *(_build(module, version, kernel) for kernel, version in versions.items() if version)]


def _environment(environment: Environment, plan: Stack) -> dict[str, Any]:
    asked = [Requirement(line) for line in environment.requirements]
    named = {one.name.lower(): next((pin.version for pin in one.specifier), "2.1.0") for one in asked}
    lock = {"request": request_digest(environment, plan.os), "packages": {**named, **TRANSITIVE}}
    python = f"{environment.python}.2"
    return {"python": python, "home": _home(environment), "packages": {**named, **TRANSITIVE}, "lock": lock}


def _home(environment: Environment) -> str:
    """Return where the interpreter that an environment was made with lies."""
    assert environment.interpreter
    path = environment.interpreter.path or f"/opt/allreduce/python/cpython-{environment.python}.2/bin/python"
    return path.rpartition("/")[0]


# Packages


def _drop_package(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    wanted = [package.name for package in all_packages(plan)]
    name = draw(st.sampled_from([*wanted, *BYSTANDERS]))
    del state["packages"][name]
    return name in wanted


def _other_version(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """A version that no plan names, but any is right where the plan names none."""
    wanted = {package.name: package.version for package in all_packages(plan)}
    name = draw(st.sampled_from([*wanted, *BYSTANDERS]))
    state["packages"][name] = "0.0.1-1"
    return wanted.get(name) is not None


def _other_epoch(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """The epoch counts only where the plan names one."""
    wanted = {package.name: package.version for package in all_packages(plan)}
    name = draw(st.sampled_from([*wanted, *BYSTANDERS]))
    without = state["packages"][name].rpartition(":")[2]
    epoch = draw(st.sampled_from(["", "1:", "7:"]))
    before, state["packages"][name] = state["packages"][name], epoch + without
    return ":" in (wanted.get(name) or "") and before != epoch + without


def _superseded_driver(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """A driver of another branch; one that left only its settings does not matter to NVIDIA's installer."""
    place = draw(st.sampled_from(["packages", "leftover_packages"]))
    state[place]["nvidia-driver-999"] = "999.10.01-1"
    driver = plan.driver
    return driver is not None and (driver.source != "runfile" or place == "packages")


def _other_cudnn(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """Another cuDNN beside the planned one; the linker would find either."""
    state["packages"]["libcudnn7"] = "7.6.5.32-1+cuda10.2"
    return plan.cudnn is not None


def _more_packages(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["packages"].update({"cuda-toolkit-10-2": "10.2.89-1", "libnccl7": "7.0-1", "linux-image-amd64": "6.1.99"})
    return False


def _unknown_packages(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["packages"], state["leftover_packages"] = None, {}
    return bool(all_packages(plan))


# Kernels, modules, what is loaded


def _kernels_and_builds(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """The running kernel and that of the next boot must have the version that the packages brought; others need not."""
    kernel, version = state["kernel"], _driver_version(plan)
    kernel["running"] = draw(st.sampled_from(KERNELS))
    kernel["next_boot"] = draw(st.sampled_from([None, *KERNELS]))
    kernel["headers"] = draw(st.sampled_from([list(KERNELS), [RUNNING], []]))
    older = f"{plan.driver.branch}.100.01" if plan.driver else None
    has = draw(st.fixed_dictionaries({one: st.sampled_from([version, version, None, older]) for one in KERNELS}))
    kernel["driver_modules"] = {one: has[one] == version for one in KERNELS}
    state["dkms"] = _builds(plan, has)
    matter = {kernel["running"], kernel["next_boot"] or NEWEST}
    return plan.driver is not None and not all(kernel["driver_modules"][one] for one in matter)


def _compiled_only(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """DKMS compiled the module for a kernel, and did not install it."""
    kernel = draw(st.sampled_from([RUNNING, NEWEST]))
    found = [build for build in state["dkms"] if build["kernel"] == kernel and build["module"] != "zfs"]
    for build in found:
        build["status"] = "built"
    return bool(found)


def _container(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """A container has no kernels: with headers, the newest of those must have the module."""
    built = draw(st.sampled_from(KERNELS))
    headers = draw(st.sampled_from([list(KERNELS), [OLD], []]))
    state["container"] = True
    state["kernel"] = {"running": "6.8.0-host", "headers": headers, "driver_modules": {}}
    state["dkms"] = _builds(plan, {built: _driver_version(plan)})
    return bool(plan.driver and plan.driver.dkms_module) and headers[-1:] != [built]


def _unknown_modules(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["dkms"], state["kernel"]["driver_modules"] = None, dict.fromkeys(KERNELS)
    return plan.driver is not None


def _other_loaded(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["driver"]["loaded"] = draw(st.sampled_from([None, "470.256.02"]))
    return plan.driver is not None


def _unknown_driver(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["driver"] = None
    return plan.driver is not None


def _secure_boot(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """A key that is not enrolled is a difference unless the planned module is loaded, which proves that it may be."""
    state["driver"]["loaded"] = draw(st.sampled_from([state["driver"]["loaded"], None, "470.256.02"]))
    state["secure_boot"] = {
        "enforced": draw(st.sampled_from([True, False, None])),
        "shim": draw(st.booleans()),
        "certificate": "/var/lib/dkms/mok.pub",
        "key": draw(st.sampled_from([None, "unknown", "pending", "enrolled"])),
    }
    return plan.driver is not None and state["driver"]["loaded"] != _driver_version(plan)


# Services, sources, the node


def _time_service(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """One of the two names is enough; what was not asked about is unknown."""
    services = state["services"]
    for name in ("chrony", "chronyd"):
        services[name] = draw(st.sampled_from([ON, OFF, UNKNOWN, {"enabled": True, "active": False}]))
        if draw(st.booleans()):
            del services[name]
    return ON not in (services.get("chrony"), services.get("chronyd"))


def _fabric_manager(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """It must run where it is planned, and must not where it is not."""
    found = {key: draw(st.sampled_from([True, False, None])) for key in ("enabled", "active")}
    state["services"]["nvidia-fabricmanager"] = found
    return found != ON if plan.fabric_manager else True in found.values()


def _persistence(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """The daemon is enabled, and runs where a driver is loaded for a GPU."""
    found = {key: draw(st.booleans()) for key in ("enabled", "active")}
    state["services"]["nvidia-persistenced"] = found
    return plan.driver is not None and found != ON


def _holds(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """What is planned is held, or one hold is not as it was left."""
    built = replace(plan, driver=plan.driver and replace(plan.driver, precompiled=None))
    holds = {name: one.hold_of(Desired(built)) for name, one in BY_HOLD.items()}
    state["package_holds"] = {name: asdict(one) for name, one in holds.items() if one}
    names = [name for name, one in state["package_holds"].items() if any(
        fnmatchcase(package, pattern) for package in state["packages"] for pattern in one["packages"]
    )]  # fmt: skip
    changed = draw(st.sampled_from(["", *names]))
    if changed and draw(st.booleans()):
        del state["package_holds"][changed]
    elif changed:
        state["package_holds"][changed]["kept"] = False
    return bool(changed and state["package_holds"])  # without any no role has run, and nothing was held yet


def _other_services(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["services"].update({"nvidia-persistenced": UNKNOWN, "allreduce-gpu-settings": ON})
    return False


def _mirrors(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """Every suite of the archive needs every component; what has no main is not an archive."""
    more = draw(st.sampled_from([{"suite": "stable-updates", "components": ["main"]},
                                 {"suite": "other", "components": ["stable"]}, None]))  # fmt: skip
    state["apt_mirrors"] = [*(state["apt_mirrors"] or []), {**ARCHIVE, **more}] if more else None
    needed = bool(plan.driver and plan.driver.components)
    return needed and (more is None or "main" in more["components"])


def _reboot(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """What the distribution asks for after an upgrade of its own is not a difference."""
    by_role = draw(st.booleans())
    state["reboot_pending"] = {"reason": draw(st.sampled_from(["a reason", None])), "since": 1, "by_role": by_role}
    state["reboot_recorded"] = by_role
    return by_role


def _interrupted(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["package_manager_interrupted"] = draw(st.sampled_from([True, None]))
    return True


def _busy(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["package_manager_holder"] = {"pid": 812, "program": "unattended-upgr"}
    state["disk_free_mib"] = {"/": 1}
    return False


# Environments


def _environment_changed(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """Another interpreter, no lock or one of another request, or packages that are not those of the lock."""
    name = draw(st.sampled_from(sorted(state["environments"]) or [""]))
    if not name:
        return False
    found = state["environments"][name]
    change = draw(
        st.sampled_from(
            ["python", "no python", "home", "request", "no lock", "drop", "extra", "alter", "locked", "absent", "file"]
        )
    )
    package = draw(st.sampled_from(sorted(found["packages"])))
    if change in ("python", "no python"):
        found["python"] = "3.99.1" if change == "python" else None
    elif change == "home":
        found["home"] = "/opt/conda/bin"
    elif change == "request":
        found["lock"]["request"] = "0123456789abcdef"
    elif change == "no lock":
        found["lock"] = None
    elif change == "drop":
        del found["packages"][package]
    elif change == "file":
        found["changed_files"] = {package: "lib/python3.11/site-packages/changed.py"}
    elif change == "absent":
        del state["environments"][name]
    else:
        place = found["lock"] if change == "locked" else found
        place["packages"]["attrs" if change == "extra" else package] = "0.0.1"
    return True


def _harmless_environment(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    """An environment of somebody else; local versions and patch levels that the plan leaves open; a URL that is pinned."""
    for found in state["environments"].values():
        found["python"] += "1"
        for name, version in found["packages"].items():
            found["packages"][name] = found["lock"]["packages"][name] = f"{version}+cpu"
        found["lock"]["packages"]["filelock"] = None
    state["environments"]["theirs"] = {"python": "3.7.1", "packages": {"torch": "0.1"}}
    return False


def _unknown_environments(draw: st.DrawFn, plan: Stack, state: State) -> bool:
    state["environments"] = None
    return bool(plan.environments)


PARTS: dict[str, list[Mutation]] = {
    "packages": [_drop_package, _other_version, _other_epoch, _superseded_driver, _other_cudnn, _more_packages,
                 _unknown_packages],
    "modules": [_kernels_and_builds, _compiled_only, _container, _unknown_modules],
    "driver": [_other_loaded, _unknown_driver, _secure_boot],
    "services": [_time_service, _persistence, _other_services],
    "holds": [_holds],
    "fabric manager": [_fabric_manager],
    "mirrors": [_mirrors],
    "reboot": [_reboot],
    "package manager": [_interrupted, _busy],
    "environments": [_environment_changed, _harmless_environment, _unknown_environments],
}  # fmt: skip

# Mutations with most outcomes are drawn most often.
CHOICES = [(part, mutation) for part, mutations in PARTS.items() for mutation in mutations]
CHOICES += [("modules", _kernels_and_builds)] * 6 + [("packages", _other_epoch)] * 3


@st.composite
def mutated(draw: st.DrawFn) -> tuple[dict[str, Any], State, list[str]]:
    """Return a stack, a state, and the names of the mutations that brought the state away from the plan."""
    stack = draw(stacks())
    plan, state = planned(stack), copy.deepcopy(as_planned(stack))
    chosen = draw(st.lists(st.sampled_from(CHOICES), unique_by=lambda choice: choice[0], max_size=2))
    mutations = [mutation for _part, mutation in chosen]
    return stack, state, [mutation.__name__ for mutation in mutations if mutation(draw, plan, state)]


def states() -> st.SearchStrategy[tuple[dict[str, Any], State]]:
    """Return stacks with states of a node, some of them as planned."""
    return mutated().map(lambda found: found[:2])
