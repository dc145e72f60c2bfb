# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault: a machine that has it, what its kernel's log says, and the verdict that its health must get."""

from dataclasses import dataclass, field

from .machine import Machine


@dataclass(frozen=True)
class Fault:
    name: str
    machine: Machine
    verdict: str
    log: "str | None" = ""
    limits: "dict[str, int]" = field(default_factory=dict)  # options of gpu_health without which it is not a fault


def said(machine: Machine, number: int, *settings: "tuple[str, str]") -> Machine:
    """Return the machine with a GPU of whose NVML profile some lines are others."""
    return machine.change(number, settings=(*settings, *machine.gpus[number].settings))


def all_said(machine: Machine, *settings: "tuple[str, str]") -> Machine:
    for number in range(len(machine.gpus)):
        machine = said(machine, number, *settings)
    return machine


def cut(machine: Machine, links: int, *numbers: int) -> Machine:
    """Return the machine with GPUs that have only the first links."""
    for number in numbers or range(len(machine.gpus)):
        machine = machine.change(number, links=machine.gpus[number].links[:links])
    return machine


def xid(number: int, machine: Machine, gpu: int = 0, rest: str = "pid=1") -> str:
    return f"NVRM: Xid (PCI:{machine.gpus[gpu].address[:-2]}): {number}, {rest}\n"
