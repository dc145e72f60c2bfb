# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run tests with the rows that a month may bring in the tables of data/stack: `pytest -p tests.support.newer_rows`.

Rules do not change with rows, so their tests pass as before. Tests of the tables themselves are another matter.
"""

import copy
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".collections"))

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import tables as module  # noqa: E402 (found through the line above)

# Subject -> the row that a new one is like, and what is new of it.
ROWS = {
    "ansible_core": ({"version": "2.22"}, {"version": "2.29"}),
    "cuda": ({"version": "13.3"}, {"version": "13.9", "updates": {"13.9.0": "690.41.02"}, "cudart": {"13.9.0": "13.9.30"}}),
    "cudnn": ({"version": "9.20.0.48"}, {"version": "9.99.0.40"}),
    "deepspeed": ({"version": "0.19.8"}, {"version": "0.99.0"}),
    "drivers": ({"branch": 595}, {"branch": 690, "cuda": "13.9", "latest": "690.45.01"}),
    "flash_attn": ({"version": "2.8.3.post2"}, {"version": "2.99.0"}),
    "gpus": ({"model": "B200"}, {"model": "B250", "names": ["NVIDIA B250"], "pci_ids": ["2EFF"]}),
    "jax": ({"version": "0.12.0.1"}, {"version": "0.99.0"}),
    "lightning": ({"version": "2.6.6"}, {"version": "2.99.0"}),
    "nccl": ({"version": "2.32.3"}, {"version": "2.99.1", "cuda": "13.9"}),
    "tensorflow": ({"version": "2.21"}, {"version": "2.99", "releases": ["2.99.0"]}),
    "torch": ({"version": "2.14.1"}, {"version": "2.99.0", "python": ["3.11", "3.12", "3.13", "3.14"]}),
    "triton": ({"version": "3.8.0"}, {"version": "3.99.0", "torch": "==2.99.0"}),
    "vllm": ({"version": "0.33.0"}, {"version": "0.99.0", "torch": "==2.99.0"}),
}  # fmt: skip
# Branch -> its next release.
RELEASES = {535: "535.999.01", 580: "580.999.02", 595: "595.999.03"}


def a_month_later(tables):
    """Return tables with newer rows, and with a newer release of each driver branch that still has some."""
    subjects = copy.deepcopy(tables.subjects)
    for name, (like, new) in ROWS.items():
        rows = subjects[name]["rows"]
        row = next(row for row in rows if all(row[key] == value for key, value in like.items()))
        rows.append({**copy.deepcopy(row), **new})
    for row in subjects["drivers"]["rows"]:
        row["latest"] = RELEASES.get(row["branch"], row["latest"])
    for row in subjects["archives"]["rows"]:
        last = row["suites"][-1]
        version = RELEASES.get(row["branch"], last["version"])
        last.update(version=version, revision=last["revision"].replace(last["version"], version))
    return module.Tables("2099.01.01", subjects)


@cache
def load(directory=module.DIRECTORY):
    """Read the tables as tables.load does; those of data/stack have the newer rows."""
    tables = _load(directory)
    return a_month_later(tables) if directory == module.DIRECTORY else tables


_load, module.load = module.load, load
