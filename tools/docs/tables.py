# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything the resolver can plan, as Markdown tables, for docs/stack.md."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

from ..supported import Scenario
from .markdown import table
from .proof import tested


def supported(tables: Tables, known: Mapping[str, Scenario]) -> str:
    """Everything the resolver can plan, as Markdown tables."""
    parts = [
        (
            "Operating systems",
            table(
                ("system", "Python", "for environments", "glibc", "driver from", "CUDA", "tested"),
                [(*_os(row), tested(row, known)) for row in tables.rows("distros")],
            ),
        ),
        ("GPUs", table(("model", "generation", "capability", "drivers", "modules"), map(_gpu, tables.rows("gpus")))),
        (
            "Driver branches",
            table(
                ("branch", "type", "end of life", "newest seen", "CUDA"), map(_driver, reversed(tables.rows("drivers")))
            ),
        ),
        (
            "PyTorch",
            table(
                ("release", "released", "Python", "builds", "torchvision", "torchaudio"),
                map(_torch, reversed(tables.rows("torch"))),
            ),
        ),
        (
            "TensorFlow",
            table(("release", "Python", "CUDA", "cuDNN"), map(_tensorflow, reversed(tables.rows("tensorflow")))),
        ),
        ("CuPy", table(("series", "Python", "wheels"), map(_cupy, reversed(tables.rows("cupy"))))),
    ]
    head = f"Tables of version {tables.version}.\n"
    return "\n".join([head, *(f"### {title}\n\n{body}\n" for title, body in parts)])


def _os(row: dict) -> tuple:
    cuda = f"{row['cuda_first'] or '?'} – {row['cuda_last'] or 'newest'}"
    state = " (end of life)" if row["status"] == "eol" else ""
    name, pythons, glibc = f"{row['id']} {row['version']}{state}", ", ".join(row["pythons"]), row["glibc"] or "?"
    return name, row["python"], pythons, glibc, ", ".join(row["drivers"]), cuda


def _gpu(row: dict) -> tuple:
    drivers = f"{row['min_driver'] or 'of CUDA ' + row['min_cuda']} – {row['max_driver_branch'] or 'newest'}"
    return row["model"], row["architecture"], row["compute_capability"], drivers, ", ".join(row["kernel_modules"])


def _driver(row: dict) -> tuple:
    return row["branch"], row["type"] or "?", row["eol"] or row["status"], row["latest"] or "?", row["cuda"]


def _torch(row: dict) -> tuple:
    builds = ", ".join(build["tag"] for build in row["builds"])
    beside = [row.get(name, "?") for name in ("torchvision", "torchaudio")]
    return row["version"], row.get("released", "?"), _range(row["python"]), builds, *beside


def _tensorflow(row: dict) -> tuple:
    return ", ".join(row["releases"]), _range(row["python"]), row["cuda"], row["cudnn"]


def _cupy(row: dict) -> tuple:
    return (
        row["series"],
        _range(row["python"]),
        ", ".join(f"{name} {versions[-1]}" for name, versions in row["wheels"].items()),
    )


def _range(versions: list[str]) -> str:
    return f"{versions[0]} – {versions[-1]}"
