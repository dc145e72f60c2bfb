# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages, from which repository, bring a chosen driver."""

from __future__ import annotations

from collections.abc import Mapping

from .model import Candidate, Problem
from .tables import Tables


def driver_result(tables: Tables, problem: Problem, driver: Candidate) -> dict:
    """The driver part of the stack."""
    row = driver.row
    return {
        "branch": str(row["branch"]["branch"]),
        "version": driver.version,
        "source": row["source"],
        "kernel_modules": row["kernel_modules"],
        "package_manager": problem.os["package_manager"],
        **SOURCES[row["source"]](problem, driver),
    }


def _distribution(problem: Problem, driver: Candidate) -> dict:
    archive, suite, flavour = driver.row["archive"], driver.row["suite"], driver.row["kernel_modules"]
    names = archive["packages"][flavour] + archive["packages"]["common"]
    pattern = f"{row_branch(driver)}.*" if driver.row["moves"] else suite["revision"]
    versions = {**dict.fromkeys(names, pattern), **_pinned(driver)}
    return {
        "packages": [{"name": name, "version": versions[name]} for name in sorted(versions)],
        "components": list(archive["components"]),
        "held": list(archive["held"]),
        "dkms_module": archive["dkms_module"][flavour],
    }


def row_branch(driver: Candidate) -> int:
    return driver.row["branch"]["branch"]


def _pinned(driver: Candidate) -> dict[str, str]:
    """Packages of the branch with a version of their own."""
    pinned = driver.row["suite"]["pinned"]
    if not driver.row["moves"]:
        return dict(pinned)
    branch = f"{row_branch(driver)}."
    return {name: f"{branch}*" if version.startswith(branch) else version for name, version in pinned.items()}


def _nvidia(problem: Problem, driver: Candidate) -> dict:
    family = {"debian": _nvidia_apt, "el": _nvidia_dnf}[problem.os["family"]]
    return {
        "components": [],
        "held": ["*nvidia*", "*cuda-drivers*", "libcuda*"],
        "dkms_module": "nvidia",
        **family(problem, driver),
    }


def _package(name: str, version: str | None = None) -> dict:
    return {"name": name, "version": version}


def _nvidia_apt(problem: Problem, driver: Candidate) -> dict:
    branch, open_modules = driver.row["branch"]["branch"], driver.row["kernel_modules"] == "open"
    if problem.os["id"] == "debian":
        names = ["nvidia-driver-cuda", "nvidia-kernel-open-dkms" if open_modules else "nvidia-kernel-dkms"]
    elif branch < 590:
        tail = f"{branch}-open" if open_modules else f"{branch}"
        names = [f"nvidia-headless-{tail}", f"nvidia-utils-{branch}"]
    else:
        names = ["nvidia-headless-open" if open_modules else "nvidia-headless", "nvidia-utils"]
    pinning = [_package(f"nvidia-driver-pinning-{driver.version}")] if branch >= 580 else []
    return {"packages": [_package(name, f"{driver.version}-*") for name in names], "pinning_packages": pinning}


def _nvidia_dnf(problem: Problem, driver: Candidate) -> dict:
    branch, open_modules = driver.row["branch"]["branch"], driver.row["kernel_modules"] == "open"
    kernel = "kmod-nvidia-open-dkms" if open_modules else "kmod-nvidia-latest-dkms"
    version = f"3:{driver.version}-*"
    names = ["nvidia-driver-cuda", kernel, "nvidia-persistenced"]
    stream = f"{branch}-{'open' if open_modules else 'dkms'}" if problem.os.get("modularity") else None
    return {"packages": [_package(name, version) for name in names], "module_stream": stream}


def _runfile(problem: Problem, driver: Candidate) -> dict:
    return {"packages": [], "components": [], "held": [], "dkms_module": "nvidia"}


SOURCES = {"distribution": _distribution, "nvidia": _nvidia, "runfile": _runfile}


def repository_result(tables: Tables, problem: Problem) -> dict:
    """NVIDIA's repository for the host: where it is, which key signs it, which priority it gets."""
    subject, slug = tables.subjects["repositories"], problem.os["repository"]
    row: Mapping = tables.find("repositories", slug=slug) or {}
    directory = subject["arch_directories"][problem.arch]
    url = f"{subject['base_url']}{slug}/{directory}/"
    return {
        "slug": slug,
        "url": url,
        "key_url": url + row["key"],
        "key_fingerprint": row["key_fingerprint"],
        "pin_priority": row["pin_priority"],
        "origin": subject["origin"],
        "label": subject["label"],
        "retired_keys": list(subject["retired_keys"]),
    }
