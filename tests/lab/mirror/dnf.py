# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dnf repositories with module streams."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from ..progress import LabError
from . import keys, pythons
from .apt import VARIANTS
from .catalogue import repositories
from .model import Package, numbers, table
from .payload import Builder
from .rpm import build as build_packages

EL = ("el8", "el9", "el10")
MODULE_VERSION = 20260901000000


def build_nvidia(slug: str, packages: list[Package], builder: Builder, place: Path, key_place: Path) -> None:
    """Build one of NVIDIA's repositories: packages, their signatures, metadata, streams, the key."""
    row = repositories()[slug]
    build_packages(packages, builder, place)
    with keys.signer(key_place, "lab") as signature:
        _sign_packages(place, signature)
        _metadata(place, modules(packages, row["dist"]))
        _sign_metadata(place, place, signature)
    with keys.signer(key_place, "unknown") as signature:
        _sign_metadata(place, place / VARIANTS / "unknown-key", signature)
    public = (key_place / "lab.pub").read_text(encoding="utf-8")
    (place / row["key"]).write_text(public, encoding="utf-8")
    (place / "repodata" / "repomd.xml.key").write_text(public, encoding="utf-8")
    (place / VARIANTS / "sha1-key").mkdir(parents=True)
    sha1 = (key_place / "sha1.pub").read_text(encoding="utf-8")
    (place / VARIANTS / "sha1-key" / row["key"]).write_text(sha1, encoding="utf-8")


def build_distribution(dist: str, packages: list[Package], builder: Builder, place: Path, key_place: Path) -> None:
    """Build the stand-in for the distribution and EPEL."""
    build_packages(packages, builder, place)
    with keys.signer(key_place, "archive") as signature:
        _sign_packages(place, signature)
        for name, directory in table("distribution_el")["directories"].items():
            repository = place / directory
            repository.mkdir(parents=True)
            for file in _packages_of(name, place):
                file.rename(repository / file.name)
            _metadata(repository, python_modules(dist) if name == "appstream" else None)
            _sign_metadata(repository, repository, signature)
    public = (key_place / "archive.pub").read_text(encoding="utf-8")
    (place / "epel" / "RPM-GPG-KEY-EPEL").write_text(public, encoding="utf-8")
    for release in place.glob("*/*/*/epel-release-*.rpm"):
        shutil.copy(release, place / "epel" / "epel-release-latest.noarch.rpm")


def _packages_of(repository: str, place: Path) -> list[Path]:
    """Files of the packages of a repository; what the table puts in none is in the last one."""
    patterns = table("distribution_el")["placed"].get(repository, ["*"])
    return [
        file
        for file in sorted(place.glob("*.rpm"))
        if any(fnmatchcase(file.name.rsplit("-", 2)[0], one) for one in patterns)
    ]


def _sign_packages(place: Path, signature: keys.Signer) -> None:
    files = [str(path) for path in sorted(place.glob("*.rpm"))]
    defines = [
        "--define",
        "__gpg /usr/bin/gpg",
        "--define",
        f"_gpg_path {signature.home}",
        "--define",
        "_gpg_name lab.invalid",
    ]
    extra = '--batch --pinentry-mode loopback --passphrase ""'
    _run("rpmsign", *defines, "--define", f"_gpg_sign_cmd_extra_args {extra}", "--addsign", *files)


def _metadata(place: Path, streams: list[dict] | None) -> None:
    _run("createrepo_c", "--quiet", "--no-database", "--simple-md-filenames", f"--excludes={VARIANTS}/*", str(place))
    if streams:
        text = "".join(f"---\n{yaml.safe_dump(stream, sort_keys=False)}...\n" for stream in streams)
        source = place.parent / "modules.yaml"
        source.write_text(text, encoding="utf-8")
        _run("modifyrepo_c", "--mdtype=modules", "--simple-md-filenames", str(source), str(place / "repodata"))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")


def _sign_metadata(place: Path, target: Path, signature: keys.Signer) -> None:
    text = (place / "repodata" / "repomd.xml").read_text(encoding="utf-8")
    (target / "repodata").mkdir(parents=True, exist_ok=True)
    (target / "repodata" / "repomd.xml.asc").write_text(signature.detached(text), encoding="utf-8")


def modules(packages: list[Package], dist: str) -> list[dict]:
    """The documents of modules.yaml: a stream for each branch and flavour, and the default."""
    data = table("driver_el")["module"]
    drivers = [package for package in packages if package.name == "nvidia-driver"]
    branches = sorted({numbers(package.upstream)[0] for package in drivers})
    changes = table("drivers")["changes"]
    proprietary = [branch for branch in branches if branch < changes["open_only"]]
    with_open = [branch for branch in branches if branch >= changes["open_modules"]]
    precompiled = [branch for branch in table("driver_el")["precompiled"]["branches"] if branch in branches]
    streams = [
        ("latest", precompiled[-1], ""),
        ("latest-dkms", proprietary[-1], "dkms"),
        ("open-dkms", with_open[-1], "open"),
    ]
    streams += [(str(branch), branch, "") for branch in reversed(precompiled)]
    streams += [(f"{branch}-dkms", branch, "dkms") for branch in reversed(proprietary)]
    streams += [(f"{branch}-open", branch, "open") for branch in reversed(with_open)]
    documents = [_stream(packages, name, branch, kind, dist) for name, branch, kind in streams]
    profiles = {name: ["default"] for name, *rest in streams}
    return [*documents, _defaults(data["name"], data["default_stream"], profiles)]


def _stream(packages: list[Package], name: str, branch: int, kind: str, dist: str) -> dict:
    data = table("driver_el")["module"]
    kmod = {"open": "kmod-nvidia-open-dkms", "dkms": "kmod-nvidia-latest-dkms"}.get(kind)
    wanted = [*data["packages"], *data["optional"], kmod]
    chosen = [p for p in packages if p.name in wanted and numbers(p.upstream)[0] == branch]
    if not kmod:
        chosen += [p for p in packages if p.name.startswith(f"kmod-nvidia-{branch}.")]
    chosen += [p for p in packages if p.name == "dnf-plugin-nvidia"]
    names = {package.name for package in chosen}
    foreign = "cuda-drivers" if kind == "open" else "nvidia-open"
    default = [n for n in data["packages"] if n in names and n != foreign] + ([kmod] if kmod else [])
    profiles = {
        "default": {"rpms": default},
        "ks": {"rpms": [n for n in default if n != "cuda-drivers"]},
        "fm": {"rpms": [*default, *[n for n in data["optional"] if n in names]]},
    }
    return _document(data["name"], name, f"Nvidia driver for {name} branch", profiles, chosen, dist)


def python_modules(dist: str) -> list[dict]:
    """Return the streams of Python, each the default of its module, as the distribution has them."""
    documents = []
    for name, stream, packages in pythons.streams(dist):
        summary = f"Python programming language, version {stream}"
        documents += [
            _document(name, stream, summary, {"common": {"rpms": [name]}}, packages, dist),
            _defaults(name, stream, {stream: ["common"]}),
        ]
    return documents


def _defaults(module: str, stream: str, profiles: dict) -> dict:
    return {
        "document": "modulemd-defaults",
        "version": 1,
        "data": {"module": module, "stream": stream, "profiles": profiles},
    }


def _document(module: str, stream: str, summary: str, profiles: dict, packages: list[Package], dist: str) -> dict:
    context = hashlib.md5(f"{module}{stream}{MODULE_VERSION}{dist}".encode()).hexdigest()[:10]  # noqa: S324
    return {
        "document": "modulemd",
        "version": 2,
        "data": {
            "name": module,
            "stream": stream,
            "version": MODULE_VERSION,
            "context": context,
            "arch": "x86_64",
            "summary": summary,
            "description": f"{summary} (stub of the lab's mirror)",
            "license": {"module": ["MIT"]},
            "profiles": profiles,
            "artifacts": {"rpms": [f"{p.name}-{p.epoch}:{p.version}.{p.architecture}" for p in packages]},
        },
    }
