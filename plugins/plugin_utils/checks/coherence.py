# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the parts of a node's driver work together: nvidia-smi, and the toolkit on the driver's CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .check import PLAY, Check, compared
from .health import own_gpus

CATEGORY = "coherence"
LOOK = "look at the checks of the driver and at the health of the GPUs"
UNTOLD = ("the driver does not tell its CUDA version", LOOK)
NEWER = ("the toolkit is of a newer major version than the driver", "install a newer driver or an older toolkit")
_TOOLKIT = re.compile(r"cuda-toolkit-(\d+)-(\d+)$")


def checks(driver: bool, state: Mapping, gpu_node: Mapping, probe: Mapping) -> Iterator[Check]:
    """Yield the checks of one node; driver: whether it is to have one."""
    if driver:
        yield nvidia_smi(gpu_node, probe.get("nvidia_smi"))
    if gpu_node.get("gpus"):
        yield from toolkit(state.get("packages") or {}, (gpu_node.get("driver") or {}).get("cuda_driver_version"))


def nvidia_smi(gpu_node: Mapping, answer: Mapping | None) -> Check:
    """Check that nvidia-smi lists the GPUs; without any, that it starts and says that there is none."""
    count = own_gpus(gpu_node)
    expected = f"lists {count} GPUs" if count else "runs and finds no device"
    if answer is None:
        return compared("nvidia_smi", CATEGORY, expected, None, None, "nvidia-smi was not asked", PLAY)
    text, state, listed = " ".join(answer["lines"]), answer["state"], answer["count"]
    measured = {"listed": f"lists {listed} GPUs", "no_device": "no device", "no_driver": "no driver"}.get(state)
    if measured is None:
        measured = "does not run" if state == "not_started" else f"exit code {answer['exit_code']}"
    agrees = state == "listed" and listed == count if count else state in ("no_device", "no_driver")
    return compared(
        "nvidia_smi",
        CATEGORY,
        expected,
        measured,
        agrees,
        text,
        LOOK,
    )


def toolkit(packages: Mapping[str, str], cuda: str | None) -> Iterator[Check]:
    """Yield one check where a toolkit is installed: one of a newer major version than the driver's CUDA does not run."""
    found = [_TOOLKIT.match(name) for name in packages]
    versions = sorted((int(one[1]), int(one[2])) for one in found if one)
    if not versions:
        return
    expected = f"at most what the driver runs, CUDA {cuda or 'of unknown version'}"
    agrees = None if cuda is None else versions[-1][0] <= int(cuda.partition(".")[0])
    measured = f"CUDA {versions[-1][0]}.{versions[-1][1]}"
    why = UNTOLD if cuda is None else NEWER
    yield compared("cuda_toolkit", CATEGORY, expected, None if cuda is None else measured, agrees, *why)
