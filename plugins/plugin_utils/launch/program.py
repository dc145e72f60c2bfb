# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build programs for a node out of module_utils: a main module and everything it imports, as files Python runs as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "ansible_collections.allreduce.gpu.plugins.module_utils"
SOURCES = Path(__file__).resolve().parents[2] / "module_utils"
MAIN = """\
# Written by the collection allreduce.gpu: the files below are its own.
import sys

from {package}.{main} import main

sys.exit(main(sys.argv[1:]))
"""


def program_files(main: str, directory: str) -> list[dict[str, str]]:
    """Return [{path, content}], sorted: ``python3 DIRECTORY`` then runs ``main(arguments)`` of the module MAIN.

    MAIN is a dotted name below module_utils, such as ``settings.gpu_settings_program``.
    Raise ValueError for a module that does not exist, or that imports what a node without Ansible lacks.
    """
    files = {"__main__.py": MAIN.format(package=PACKAGE, main=main)}
    waiting, known = [main], {main}
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if not path.is_file():
            raise ValueError(f"There is no module_utils file {path.relative_to(SOURCES)} to make a program of.")
        text = path.read_text(encoding="utf-8")
        files[f"{PACKAGE.replace('.', '/')}/{path.relative_to(SOURCES)}"] = text
        fresh = set(_imported(ast.parse(text), name)) - known
        known |= fresh
        waiting += sorted(fresh)
    return [{"path": f"{directory}/{name}", "content": files[name]} for name in sorted(files)]


def _path(name: str) -> Path:
    return SOURCES.joinpath(*name.split(".")).with_suffix(".py")


def _imported(tree: ast.Module, importer: str) -> Iterator[str]:
    """Yield the dotted names, below module_utils, of the modules that a module imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = [*importer.split(".")[: -node.level], *filter(None, [node.module])]
            if _path(".".join(package)).is_file():
                yield ".".join(package)
            else:
                yield from (".".join([*package, alias.name]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ansible"):
            raise ValueError(f"{importer} imports {node.module}, which a node does not have.")
