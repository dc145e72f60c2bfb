# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a GPU through NVML while something else is measured."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .records import Record, first_line, summary

if TYPE_CHECKING:
    from .place import Place

MIB = 1 << 20


class Watch:
    """NVML's view of one GPU; ``code`` and ``reason`` say why there is none."""

    def __init__(self, place: Place):
        self.code, self.reason, self.driver = "", "", None
        self._readers: dict[str, Callable[[], float]] = {}
        if not place.is_cuda:
            self.code, self.reason = "no_gpu", "This rank has no GPU to watch."
            return
        try:
            import pynvml
        except ImportError as error:
            self.code, self.reason = "no_pynvml", first_line(error)
            return
        try:
            pynvml.nvmlInit()
            self.driver = text(pynvml.nvmlSystemGetDriverVersion())
            handle = at_address(pynvml, pci_address(place.local_rank))
            self._readers = available(readers(pynvml, handle), pynvml.NVMLError)
        except (pynvml.NVMLError, OSError) as error:
            self.code, self.reason = "no_nvml", first_line(error)

    def read(self) -> dict[str, float]:
        """Return the present values of the GPU."""
        found = {}
        for name, reader in self._readers.items():
            try:
                found[name] = float(reader())
            except Exception:  # noqa: BLE001, S112 - a sample that is missing spoils no measurement
                continue
        return found

    @property
    def is_open(self) -> bool:
        return bool(self._readers)


def readers(nvml: Any, handle: Any) -> dict[str, Callable[[], float]]:
    """Return the questions to a GPU, by name and unit."""
    clock = nvml.nvmlDeviceGetClockInfo
    return {
        "utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        "memory_used_mib": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / MIB,
        "power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "clock_sm_mhz": lambda: clock(handle, nvml.NVML_CLOCK_SM),
        "clock_memory_mhz": lambda: clock(handle, nvml.NVML_CLOCK_MEM),
    }


def available(found: dict[str, Callable[[], float]], refused: type[Exception]) -> dict[str, Callable[[], float]]:
    """Return the readers that this GPU answers."""
    kept = {}
    for name, reader in found.items():
        try:
            reader()
            kept[name] = reader
        except refused:
            continue
    return kept


def at_address(nvml: Any, address: str) -> Any:
    """Return the handle of the GPU at a PCI address; NVML writes domains with more digits than CUDA."""
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower().endswith(address):
            return handle
    raise OSError(f"NVML shows no GPU at {address}")


def pci_address(ordinal: int) -> str:
    """Return the PCI address of a CUDA device: NVML counts all GPUs, CUDA those that CUDA_VISIBLE_DEVICES leaves."""
    cuda, device, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(32)
    for status in (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), ordinal),
        cuda.cuDeviceGetPCIBusId(address, len(address), device),
    ):
        if status:
            raise OSError(f"libcuda answers with error {status}")
    return address.value.decode().lower()


def text(value: Any) -> str:
    """Return a value as text, which older releases of pynvml give as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


class Sampler:
    """Sample a watched GPU in a thread, as long as the block lasts."""

    def __init__(self, watch: Watch, interval: float = 0.25):
        self._watch, self._interval, self._over = watch, interval, threading.Event()
        self._samples: list[dict[str, float]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        if self._watch.is_open:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._interval):
            self._samples.append(self._watch.read())

    def record(self, during: str, rank: int) -> Record:
        """Return the record of the samples during a part of the benchmark."""
        base: Record = {"during": during, "rank": rank}
        if not self._watch.is_open:
            return {**base, "status": "not_measured", "code": self._watch.code, "reason": self._watch.reason}
        if not self._samples:
            return {
                **base,
                "status": "not_measured",
                "code": "too_short",
                "reason": "It ended before the first sample.",
            }
        values = {name: [one[name] for one in self._samples if name in one] for name in self._samples[0]}
        figures = {name: summary(found) for name, found in values.items() if found}
        for figure in figures.values():
            del figure["repetitions"]
        return {**base, "status": "measured", "samples": len(self._samples), "figures": figures}
