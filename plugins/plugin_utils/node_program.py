# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs for a node out of module_utils: a main module with all it imports from there, as files that Python runs as they lie."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "ansible_collections.allreduce.gpu.plugins.module_utils"
SOURCES = Path(__file__).resolve().parents[1] / "module_utils"
MAIN = """\
# Written by the collection allreduce.gpu: the files below are its own.
import sys

from {package}.{main} import main

sys.exit(main(sys.argv[1:]))
"""


def program_files(main: str, directory: str) -> list[dict[str, str]]:
    """[{path, content}], sorted: ``python3 DIRECTORY`` then runs ``main(arguments)`` of the module_utils file MAIN.

    ValueError for a file that is not there, or that imports what a node without Ansible lacks.
    """
    files = {"__main__.py": MAIN.format(package=PACKAGE, main=main)}
    waiting, known = [main], {main}
    while waiting:
        name = waiting.pop()
        path = SOURCES / f"{name}.py"
        if not path.is_file():
            raise ValueError(f"There is no module_utils file {name}.py to make a program of.")
        text = path.read_text(encoding="utf-8")
        files[f"{PACKAGE.replace('.', '/')}/{name}.py"] = text
        fresh = set(imported(ast.parse(text), path)) - known
        known |= fresh
        waiting += sorted(fresh)
    return [{"path": f"{directory}/{name}", "content": files[name]} for name in sorted(files)]


def imported(tree: ast.Module, path: Path) -> Iterator[str]:
    """Names of the module_utils files that a file imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            yield node.module.removeprefix(f"{PACKAGE}.").partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ansible"):
            raise ValueError(f"{path.name} imports {node.module}, which a node does not have.")
