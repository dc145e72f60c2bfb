# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build .rpm files with rpmbuild: one spec file makes as many packages as have different names."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..progress import LabError
from .model import Package
from .payload import Builder, Payload

HEAD = """\
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _binary_payload w1.gzdio
%global _source_payload w1.gzdio
%global _target_os linux
%global __brp_mangle_shebangs %{{nil}}
Name: lab-stubs-{number}
Version: 1
Release: 1
Summary: Stubs of the lab's mirror
License: GPL-3.0-or-later
%description
Stubs.
%install
cp -a {files}/. %{{buildroot}}/

"""
SCRIPTS = {"postinst": "post", "prerm": "preun", "postrm": "postun", "posttrans": "posttrans"}


def build(packages: list[Package], builder: Builder, place: Path) -> None:
    """Write the .rpms into PLACE."""
    layers = _layers([(package, builder.build(package)) for package in packages])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda item: _build_layer(item[0], item[1], place), enumerate(layers)))


def _layers(packages: list[tuple[Package, Payload]]) -> list[list[tuple[Package, Payload]]]:
    """Groups without two packages of one name or two that bring one path: they share a build root."""
    layers: list[tuple[set[str], list[tuple[Package, Payload]]]] = []
    for package, payload in packages:
        marks = {package.name, *payload.files}
        layer = next((layer for layer in layers if not marks & layer[0]), None)
        if layer is None:
            layer = (set(), [])
            layers.append(layer)
        layer[0].update(marks)
        layer[1].append((package, payload))
    return [members for dummy, members in layers]


def _build_layer(number: int, packages: list[tuple[Package, Payload]], place: Path) -> None:
    work = place.parent / f"layer-{number}"
    (work / "files").mkdir(parents=True)
    spec = HEAD.format(number=number, files=work / "files")
    for package, payload in packages:
        _write_files(payload, work / "files")
        spec += section(package, payload)
    (work / "stubs.spec").write_text(spec, encoding="utf-8")
    defines = {"_topdir": work, "_rpmdir": place, "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"}
    argv = ["rpmbuild", "-bb", "--quiet", "--nodeps", "--target", "x86_64-linux"]
    for key, value in defines.items():
        argv += ["--define", f"{key} {value}"]
    done = subprocess.run([*argv, str(work / "stubs.spec")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"rpmbuild ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def _write_files(payload: Payload, root: Path) -> None:
    for path, content in payload.files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.symlink_to(content)
        else:
            target.write_bytes(content)
            target.chmod(0o755 if path in payload.programs else 0o644)


def section(package: Package, payload: Payload) -> str:
    """Return one %package of a spec file."""
    name = package.name
    version, dummy, release = package.version.rpartition("-")
    if not version:
        version, release = package.version, "1"
    lines = [f"%package -n {name}", "Summary: Stub", f"Version: {version}", f"Release: {release}", "AutoReqProv: no"]
    if package.epoch:
        lines.append(f"Epoch: {package.epoch}")
    if package.architecture == "noarch":
        lines.append("BuildArch: noarch")
    lines += [f"Requires: {relation}" for relation in package.depends]
    lines += [f"Provides: {relation}" for relation in package.provides]
    lines += [f"Conflicts: {relation}" for relation in package.conflicts]
    lines += [f"Obsoletes: {relation}" for relation in package.obsoletes]
    if package.architecture != "noarch":
        epoch = f"{package.epoch}:" if package.epoch else ""
        lines.append(f"Provides: {name}(x86-64) = {epoch}{version}-{release}")
    lines += [f"%description -n {name}", "Stub of the lab's mirror."]
    scripts = payload.scripts
    if any(".so." in path for path in payload.files):  # glibc's file trigger does this on real hosts
        scripts = {"postinst": "ldconfig", "postrm": "ldconfig", **scripts}
    for script, body in scripts.items():
        lines += [f"%{SCRIPTS[script]} -n {name}", body]
    lines.append(f"%files -n {name}")
    sources = {path.rpartition("/")[0] for path in payload.files if path.startswith("/usr/src/")}
    lines += [f"%dir {directory}" for directory in sorted(sources)]
    lines += [f"%attr(-,root,root) {path}" for path in payload.files]
    return "\n".join(lines) + "\n\n"
