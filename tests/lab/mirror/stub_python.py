# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of Python packages: an interpreter of tests/lab/interpreters under the prefix /usr.

Enterprise Linux has the library in /usr/lib64. Python can be told so from 3.9 on, by the program that starts it; 3.8 keeps
it in /usr/lib. (A replica has a Python 3.11 of Debian there, so it does matter.)
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from .. import interpreters
from ..interpreters import elf, layout
from .model import Package, numbers
from .stub import Maker, Payload

# Python's own main program with another --with-platlibdir.
LAUNCHER = r"""
#include <Python.h>
int main(int argc, char **argv)
{
    PyStatus status;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    status = PyConfig_SetString(&config, &config.platlibdir, L"lib64");
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
    return Py_RunMain();
}
"""


def library_directory(manager: str, python: str) -> str:
    """Return the directory under /usr that has the standard library."""
    return "lib64" if manager == "dnf" and numbers(python) >= [3, 9] else "lib"


@cache
def launcher(python: str) -> bytes:
    """Return a program that starts Python with its library in lib64."""
    name = f"python{python}"
    with tempfile.TemporaryDirectory() as work:
        for path, (content, _mode) in interpreters.files(python).items():
            if isinstance(content, bytes) and (path.startswith("include/") or f"/{layout.LIBRARIES}/lib" in path):
                target = Path(work) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        libraries, program = Path(work) / "lib" / name / layout.LIBRARIES, Path(work) / name
        subprocess.run(
            ["gcc", "-O1", f"-I{work}/include/{name}", "-x", "c", "-o", str(program), "-", f"-L{libraries}",
             f"-l:lib{name}.so.1.0", f"-Wl,-rpath-link,{libraries}"],
            input=LAUNCHER, text=True, check=True,
        )  # fmt: skip
        elf.bind_program(program, f"$ORIGIN/../lib64/{name}/{layout.LIBRARIES}")
        return program.read_bytes()


def _put(maker: Maker, package: Package, payload: Payload, below: str, unless: str = "/site-packages/") -> None:
    """Put files of the interpreter into the package: those below a directory of its tree, `lib/python3.10/ensurepip/`."""
    place = library_directory(maker.manager, package.python)
    for path, (content, mode) in interpreters.files(package.python).items():
        if path.startswith(below) and unless not in path:
            target = f"/usr/{place}/{path.removeprefix('lib/')}" if path.startswith("lib/") else f"/usr/{path}"
            if path.endswith((".py", "/Makefile")) and isinstance(content, bytes):
                content = content.replace(layout.PREFIX.encode(), b"/usr")
            payload.files[target] = content
            if mode & 0o100:
                payload.programs.add(target)


def _program(maker: Maker, package: Package, payload: Payload) -> None:
    path = f"/usr/bin/python{package.python}"
    if library_directory(maker.manager, package.python) == "lib64":
        payload.files[path] = launcher(package.python)
        payload.programs.add(path)
    else:
        _put(maker, package, payload, f"bin/python{package.python}")


def _library(maker: Maker, package: Package, payload: Payload) -> None:
    """Ensurepip is a package's own on Ubuntu, its wheels are on Enterprise Linux."""
    _put(maker, package, payload, f"lib/python{package.python}/")
    apart = "/ensurepip/" if maker.manager == "apt" else "/ensurepip/_bundled/"
    for path in [path for path in payload.files if apart in path or "/site-packages/" in path]:
        del payload.files[path]


def _ensurepip(maker: Maker, package: Package, payload: Payload) -> None:
    _put(maker, package, payload, f"lib/python{package.python}/ensurepip/")


def _wheel_pip(maker: Maker, package: Package, payload: Payload) -> None:
    _put(maker, package, payload, f"lib/python{package.python}/ensurepip/_bundled/", unless="/setuptools-")


def _wheel_setuptools(maker: Maker, package: Package, payload: Payload) -> None:
    _put(maker, package, payload, f"lib/python{package.python}/ensurepip/_bundled/setuptools-")


def _headers(maker: Maker, package: Package, payload: Payload) -> None:
    _put(maker, package, payload, f"include/python{package.python}/")


KINDS = {
    "python_program": _program,
    "python_library": _library,
    "python_ensurepip": _ensurepip,
    "python_wheel_pip": _wheel_pip,
    "python_wheel_setuptools": _wheel_setuptools,
    "python_headers": _headers,
}
