# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.nulls`: how many cells of the tables could not be filled, per file and column, and what holds without them.

null is "not known"; what does not apply is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

# Who says that a cell is not known, or what holds without it.
REASONS = {
    ("dcgm", "released"): "documentation shows ?",
    ("container_toolkit", "min_driver"): "the component warns, and takes the floor of older releases",
    ("cuda", "updates"): "none: the toolkit comes without a driver",
    ("distros", "cuda_first"): "rule cuda-os doubts each toolkit: no copy of the repository's index was to be had",
    ("distros", "driver_first"): "rule driver-os doubts each branch before driver_seen",
    ("distros", "scenario"): "none: a rebuild would inherit what is left out",
    ("driver_packages", "ubuntu_revisions.addon"): "a pattern is pinned instead of a version",
    ("driver_packages", "ubuntu_revisions.driver"): "a pattern is pinned instead of a version",
    ("drivers", "eol"): "the branch's status says it; one of unknown status is doubted",
    ("drivers", "latest"): "documentation shows ?",
    ("drivers", "type"): "a branch of unknown type is preferred to none",
    ("gpus", "forward_compat"): "taken as false",
    ("gpus", "min_driver"): "rule driver-gpu-minimum doubts what is older than known_driver",
    ("jax", "tensorflow.ml_dtypes"): "none: TensorFlow requires nothing",
    ("jax", "tensorflow.nvcc"): "none: TensorFlow requires nothing",
    ("mig", "profiles"): "rule driver-mig doubts each profile",
    ("repositories", "key_fingerprint"): "role cuda_repository asks for it",
    ("tensorflow", "ptx"): "rule tensorflow-gpu doubts the release: its wheels were not examined",
    ("tensorflow", "sass"): "rule tensorflow-gpu doubts the release: its wheels were not examined",
    ("torch", "cudnn"): "rules about it doubt the build: its own index has the metadata, and no public copy does",
    ("torch", "nccl"): "rules about it doubt the build; wheels before 2.2 hold it inside",
    ("torch", "nvshmem"): "held to what the release's other builds pin, which rule nvshmem-pytorch-pin doubts",
    ("torch", "ptx"): "taken as none",
    ("torch", "sass"): "rule pytorch-gpu doubts the build, and GPUs that came later are refused",
}
TABLES = Path(__file__).resolve().parents[1] / "data" / "stack"


def nulls(directory: Path = TABLES) -> Counter[tuple[str, str]]:
    """Return the number of nulls by table and column."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(directory.glob("*.yml")):
        found.update((path.stem, column) for column in _columns(yaml.safe_load(path.read_text(encoding="utf-8"))))
    return found


def _columns(value: Any, column: str = "") -> Iterator[str]:
    """Yield the column of every null; rows and their lists name none."""
    if value is None:
        yield column
    elif isinstance(value, dict):
        for name, one in value.items():
            known = name if str(name)[0].isalpha() and name not in ("rows", "builds") else ""
            yield from _columns(one, f"{column}.{known}".strip(".") if known else column)
    elif isinstance(value, list):
        for one in value:
            yield from _columns(one, column)


def main() -> None:
    """Print the counts and their sum."""
    found = nulls()
    for (table, column), number in sorted(found.items()):
        print(f"{number:5} {table}.{column}: {REASONS.get((table, column), 'no reason is given')}")
    print(f"{sum(found.values()):5} in all")


if __name__ == "__main__":
    main()
