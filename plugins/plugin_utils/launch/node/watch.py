# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sample the GPUs of a node through NVML while a run lasts: watch.py FILE SECONDS, started by agent.py, until standard input ends.

A process of its own, since a call into a driver in trouble may not return, and not a child, since mpi.py waits for all of its own.
FILE gets lines of JSON: first {quantities, gpus: [address]}, then [seconds since the epoch, [[a value per quantity, or null] per GPU]].
The interval doubles after every SAMPLES samples, so that a run of a day leaves a few thousand lines. Nothing is written on a node
without NVML.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PYNVML = "/opt/allreduce/lib"  # of role base
SAMPLES = 500
MIB = 1 << 20


def questions(nvml: Any) -> dict[str, Callable[[Any], float]]:
    """Return the questions to a GPU, by name and unit."""
    return {
        "utilization_percent": lambda gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
        "memory_used_mib": lambda gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used // MIB,
        "power_watts": lambda gpu: round(nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
        "temperature_celsius": lambda gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
        "clock_sm_mhz": lambda gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    }


def answers(nvml: Any, gpu: Any) -> list[float | None]:
    """Return a GPU's answer to every question; None where it has none, or is gone."""
    found: list[float | None] = []
    for ask in questions(nvml).values():
        try:
            found.append(ask(gpu))
        except nvml.NVMLError:
            found.append(None)
    return found


def address(nvml: Any, gpu: Any) -> str:
    """Return the PCI address of a GPU; NVML gives bytes or text, by its release."""
    found = nvml.nvmlDeviceGetPciInfo(gpu).busId
    return (found.decode() if isinstance(found, bytes) else found).lower()


def opened(nvml: Any) -> dict[str, Any]:
    """Return the handles of the GPUs, by PCI address, without those that NVML has lost."""
    found = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            found[address(nvml, gpu)] = gpu
        except nvml.NVMLError:
            continue
    return found


def intervals(first: float) -> Iterator[float]:
    """Yield the seconds to wait for the next sample."""
    while True:
        for _unused in range(SAMPLES):
            yield first
        first *= 2


def main() -> int:
    """Sample until standard input ends."""
    if os.fork():
        os._exit(0)
    path, seconds = sys.argv[1], float(sys.argv[2])
    sys.path.append(PYNVML)
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        gpus = opened(nvml)
    except Exception as error:  # noqa: BLE001 - no module, no library, no driver: there is nothing to watch
        print(f"The GPUs are not watched: {error}", flush=True)
        return 0
    head = {"quantities": list(questions(nvml)), "gpus": list(gpus)}
    with Path(path).open("a", encoding="utf-8", buffering=1) as out:
        out.write(json.dumps(head) + "\n")
        for wait in intervals(seconds):
            out.write(json.dumps([round(time.time(), 1), [answers(nvml, gpu) for gpu in gpus.values()]]) + "\n")
            if select.select([sys.stdin], [], [], wait)[0]:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
