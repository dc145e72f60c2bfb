# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages and the repository that bring a chosen driver. A version may be an fnmatch pattern, or None for any."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from ...model import Part, Question
from ...package import Package
from ...rows import Flavour, Naming, Source
from ...tables import Tables
from ...versions import at_least, major
from .row import PACKAGES, ArchiveRow, Driver, DriverPackagesRow

# Endings that NVIDIA gives its packages for Ubuntu, and Ubuntu never: its own end in the release, as 0ubuntu0.22.04.1 does.
UNSEEN: dict[Literal["driver", "addon"], str] = {"driver": "[01]ubuntu1", "addon": "*"}


def driver_result(tables: Tables, question: Question, driver: Driver) -> Part:
    """Return the driver part of the stack."""
    row = driver.row
    return {
        "branch": str(row_branch(driver)),
        "version": driver.version,
        "source": row["source"],
        "kernel_modules": row["kernel_modules"],
        "package_manager": question.system["package_manager"],
        "installer_options": [],
        **SOURCES[row["source"]](tables, question, driver),
    }


def row_branch(driver: Driver) -> int:
    """Return the branch of a driver."""
    return driver.row["branch"]["branch"]


def naming(question: Question) -> Naming:
    """Return whose way of naming driver packages the host's distribution follows."""
    if question.system["family"] == "el":
        return "el"
    return "ubuntu" if question.system["id"] == "ubuntu" else "debian"


def package_row(tables: Tables, question: Question, branch: int) -> DriverPackagesRow:
    """Return the row of NVIDIA's packages of a branch for the host's distribution."""
    return next(
        row
        for row in tables.rows(PACKAGES)
        if row["naming"] == naming(question) and row["first"] <= branch and branch <= row.get("last", branch)
    )


def _filled(names: Iterable[str], driver: Driver) -> list[str]:
    return [name.format(branch=row_branch(driver), version=driver.version) for name in names]


def _other(flavour: Flavour) -> Flavour:
    return "proprietary" if flavour == "open" else "open"


def _held(tables: Tables, question: Question) -> list[str]:
    return list(tables.beside(PACKAGES)["held"][naming(question)])


def _distribution(tables: Tables, question: Question, driver: Driver) -> Part:
    archive, flavour = driver.row["archive"], driver.row["kernel_modules"]
    names = _filled(archive["packages"][flavour] + archive["packages"]["common"], driver)
    pattern = archive_version(driver)
    versions = {**dict.fromkeys(names, pattern), **_pinned(driver)}
    return {
        "packages": _versioned(versions),
        "pinning_packages": [],
        "components": list(archive["components"]),
        "held": _held(tables, question),
        "conflicting": _filled([*archive["packages"][_other(flavour)], *archive["other_sources"]], driver),
        "dkms_module": archive["dkms_module"][flavour],
        "precompiled": _precompiled(archive, driver),
    }


def archive_version(driver: Driver) -> str:
    """Return the version to ask for: an archive keeps one of a branch and replaces it, only that of an older suite stays."""
    return f"{row_branch(driver)}.*" if driver.row["moves"] else driver.row["suite"]["revision"]


def _precompiled(archive: ArchiveRow, driver: Driver) -> Part | None:
    """Modules the distribution built for its kernels."""
    flavour = driver.row["kernel_modules"]
    names = _filled(archive.get("precompiled", {}).get(flavour, []), driver)
    return _ready_made(names, None, set(_filled(archive["packages"][flavour], driver)) - set(names)) if names else None


def _ready_made(names: list[str], stream: str | None, usual: Iterable[str]) -> Part:
    """Compiled modules, and which of the USUAL packages they stand in for: what builds modules, and what brings that along."""
    replaced = sorted(name for name in usual if re.search(r"-dkms|nvidia-headless-\d", name))
    return {
        "packages": [{"name": name, "version": None} for name in names],
        "module_stream": stream,
        "replaces": replaced,
    }


def _versioned(versions: Mapping[str, str | None]) -> list[Package]:
    return [{"name": name, "version": versions[name]} for name in sorted(versions)]


def _pinned(driver: Driver) -> dict[str, str]:
    """Packages of the branch with a version of their own, which may be another branch's."""
    pinned = driver.row["suite"]["pinned"]
    return {name: f"{major(one)}.*" for name, one in pinned.items()} if driver.row["moves"] else dict(pinned)


def _nvidia(tables: Tables, question: Question, driver: Driver) -> Part:
    row, flavour = package_row(tables, question, row_branch(driver)), driver.row["kernel_modules"]
    names = _filled(row["packages"]["common"] + row["packages"][flavour], driver)
    others = _filled([*row["packages"][_other(flavour)], *row["other_sources"]], driver)
    found = {
        "packages": _versioned(dict.fromkeys(names, nvidia_version(tables, question, driver))),
        "pinning_packages": [{"name": name, "version": None} for name in _filled(row["pinning"], driver)],
        "components": [],
        "held": _held(tables, question),
        "conflicting": others,
        "dkms_module": row["dkms_module"][flavour],
        "precompiled": None,
    }
    return (
        {**found, **_streams(row, driver, bool(question.system.get("modularity")))}
        if naming(question) == "el"
        else found
    )


def _streams(row: DriverPackagesRow, driver: Driver, modular: bool) -> Part:
    """The module streams of a branch; EL 10 has none."""
    flavour = driver.row["kernel_modules"]
    stream = _filled([row["module_stream"][flavour]], driver)[0] if modular else None
    ready = "precompiled_stream" in row and modular and flavour == "proprietary"
    usual = _filled(row["packages"][flavour], driver)
    precompiled = _ready_made([], _filled([row["precompiled_stream"]], driver)[0], usual) if ready else None
    return {"module_stream": stream, "precompiled": precompiled}


def nvidia_version(
    tables: Tables, question: Question, driver: Driver, kind: Literal["driver", "addon"] = "driver"
) -> str:
    """Return the version NVIDIA gives its packages of a driver; kind: driver, or addon for what is packaged apart from it."""
    if naming(question) == "el":
        return f"{'3:' if kind == 'driver' else ''}{driver.version}-*"
    if naming(question) != "ubuntu":
        return f"{driver.version}-*"
    steps = tables.beside(PACKAGES)["ubuntu_revisions"]
    step = [one for one in steps if at_least(driver.version, one["from"])][-1]
    return f"{driver.version}-{step[kind] or UNSEEN[kind]}"


def _runfile(tables: Tables, question: Question, driver: Driver) -> Part:
    none: Part = {"pinning_packages": [], "components": [], "held": [], "precompiled": None}
    steps = tables.beside(PACKAGES)["installer_options"]
    step = [one for one in steps if one["first"] <= row_branch(driver)][-1]
    options = list(step[driver.row["kernel_modules"]])
    return {
        **none,
        "packages": [{"name": "dkms", "version": None}],  # the installer's option --dkms wants it there
        "conflicting": _held(tables, question),
        "dkms_module": "nvidia",
        "installer_options": options,
    }


def _vendor(tables: Tables, question: Question, driver: Driver) -> Part:
    """Nothing to install, to remove or to hold; conflicting: what must not come from another repository; owner: who installs."""
    none: dict[str, list[str]] = {name: [] for name in ("packages", "pinning_packages", "components", "held")}
    owner = question.owner.name if question.owner else None
    return {**none, "conflicting": _held(tables, question), "dkms_module": None, "precompiled": None, "owner": owner}


SOURCES: dict[Source, Callable[[Tables, Question, Driver], Part]] = {
    "distribution": _distribution,
    "nvidia": _nvidia,
    "runfile": _runfile,
    "vendor": _vendor,
}


# The NVLink subnet manager's version line is its own. It and the fabric manager speak to the switches as InfiniBand
# management does, through this module of the kernel.
SUBNET_MANAGER: list[Package] = [{"name": "nvlsm", "version": None}, {"name": "infiniband-diags", "version": None}]
SUBNET_MODULES = ["ib_umad"]


def fabric_manager_result(tables: Tables, question: Question, driver: Driver) -> Part | None:
    """Return the fabric manager, which must be of exactly the driver's version; with NVLink 5 also what manages its subnet."""
    if "fabric_manager" not in question.fabric:
        return None
    if driver.row["source"] == "distribution":
        name, version = driver.row["archive"].get("fabric_manager"), archive_version(driver)
    else:
        name = package_row(tables, question, row_branch(driver))["fabric_manager"]
        version = nvidia_version(tables, question, driver, "addon")
    subnet = "subnet_manager" in question.fabric
    packages: list[Package] = [{"name": _filled([name], driver)[0], "version": version}] if name else []
    found: Part = {"version": driver.version, "packages": packages}
    return {**found, "packages": packages + SUBNET_MANAGER, "kernel_modules": SUBNET_MODULES} if subnet else found


def imex_result(tables: Tables, question: Question, driver: Driver) -> Part:
    """Return the service by which GPUs of a rack's nodes reach each other's memory, in exactly the driver's version."""
    name = package_row(tables, question, row_branch(driver))["imex"]
    version = nvidia_version(tables, question, driver, "addon")
    return {"version": driver.version, "packages": [{"name": _filled([name], driver)[0], "version": version}]}
