# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One emulated machine: its files, its process, its power."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import network, paths
from ..progress import LabError

PLACE = paths.LAB / "machines"
FIRMWARE = Path("/usr/share/OVMF")
# (code, variables) without and with Secure Boot, the latter with the keys that computers are sold with.
FIRMWARES = {False: ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), True: ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd")}
PROGRAM = "qemu-system-x86_64"
MIB = 1 << 20


@dataclass(frozen=True)
class Machine:
    """What a machine is: sizes in MiB; disks: sizes of NVMe devices in addition to the one it boots from."""

    name: str
    lab: str
    address: str
    host_key: str  # public
    memory: int = 2048
    processors: int = 2
    disks: tuple[int, ...] = ()
    secure_boot: bool = False
    clock: str = "utc"  # or a date as QEMU's -rtc takes it
    directory: Path = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", PLACE / self.name)

    @property
    def hardware_address(self) -> str:
        """Return a MAC address of QEMU's, the same each time."""
        digest = hashlib.sha256(f"{paths.DIGEST}/{self.name}".encode()).hexdigest()
        return f"52:54:00:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"

    @property
    def tap(self) -> str:
        """Return the name of its cable: 15 characters at most."""
        return f"tap{hashlib.sha256(f'{paths.DIGEST}/{self.name}'.encode()).hexdigest()[:8]}"


def machines(lab: str | None = None) -> list[Machine]:
    """Return the machines of one lab, or of all."""
    found = []
    for path in sorted(PLACE.glob("*/machine.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        found.append(Machine(**{**said, "disks": tuple(said["disks"])}))
    return [one for one in found if lab in (None, one.lab)]


def create(machine: Machine, base: Path, setup: str) -> None:
    """Write the files of a machine that does not exist: its disks, its firmware's variables, what it is told when it boots."""
    shutil.rmtree(machine.directory, ignore_errors=True)
    machine.directory.mkdir(parents=True)
    (machine.directory / "setup").write_text(setup, encoding="utf-8")
    (machine.directory / "setup").chmod(0o600)  # has the machine's private key
    shutil.copy(FIRMWARE / FIRMWARES[machine.secure_boot][1], machine.directory / "firmware.fd")
    _lay_over(base, machine.directory / "disk.qcow2")
    for number, size in enumerate(machine.disks):
        with (machine.directory / f"nvme{number}.raw").open("wb") as file:
            file.truncate(size * MIB)
        set_faults(machine, number, "")
    keys = ("name", "lab", "address", "host_key", "memory", "processors", "disks", "secure_boot", "clock")
    record = {key: getattr(machine, key) for key in keys}
    (machine.directory / "machine.json").write_text(json.dumps(record), encoding="utf-8")  # last: whole from here on


def _lay_over(base: Path, disk: Path) -> None:
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "raw", str(disk)]
    subprocess.run(command, check=True)


def set_faults(machine: Machine, disk: int, rules: str) -> None:
    """Let an NVMe device fail from the next start on: rules as QEMU's blkdebug reads them, none for a sound device.

    https://www.qemu.org/docs/master/devel/testing/blkdebug.html; an `inject-error` with event "none" counts for each operation.
    """
    (machine.directory / f"nvme{disk}.faults").write_text(rules, encoding="utf-8")


def warn(machine: Machine, disk: int, bits: int) -> None:
    """Let an NVMe device that runs say these critical warnings in its SMART log (NVM Express Base Specification, byte 0)."""
    ask(machine, "qom-set", path=f"/machine/peripheral/nvme{disk}", property="smart_critical_warning", value=bits)


def power_on(machine: Machine) -> None:
    """Connect a machine to the lab's bridge and start it."""
    subprocess.run(["ip", "tuntap", "add", "dev", machine.tap, "mode", "tap"], capture_output=True, check=False)
    subprocess.run(["ip", "link", "set", machine.tap, "master", network.BRIDGE, "up"], check=True)
    done = subprocess.run(command(machine), capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{machine.name} cannot be started: {done.stderr.strip()}")


def command(machine: Machine) -> list[str]:
    """Return the words that start a machine in the background."""
    place = machine.directory
    code = FIRMWARE / FIRMWARES[machine.secure_boot][0]
    disks = [
        word
        for number, _size in enumerate(machine.disks)
        for word in (
            "-drive", f"if=none,id=drive{number},format=raw,file.driver=blkdebug,file.config={place}/nvme{number}.faults,"
            f"file.image.driver=file,file.image.filename={place}/nvme{number}.raw",
            "-device", f"nvme,id=nvme{number},drive=drive{number},serial={machine.name}-{number}",
        )
    ]  # fmt: skip
    return [
        PROGRAM, "-name", machine.name, "-machine", f"q35,smm={'on' if machine.secure_boot else 'off'}",
        # Hardware acceleration would be another processor on each machine that tests; emulation is the same everywhere.
        "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", str(machine.processors), "-m", str(machine.memory),
        "-nodefaults", "-display", "none", "-rtc", f"base={machine.clock}",
        *(["-global", "driver=cfi.pflash01,property=secure,value=on"] if machine.secure_boot else []),
        "-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={code}",
        "-drive", f"if=pflash,unit=1,format=raw,file={place}/firmware.fd",
        "-drive", f"if=none,id=root,format=qcow2,file={place}/disk.qcow2", "-device", "virtio-blk-pci,drive=root,bootindex=1",
        *disks,
        "-netdev", f"tap,id=net,ifname={machine.tap},script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=net,mac={machine.hardware_address}",
        "-device", "virtio-rng-pci", "-fw_cfg", f"name=opt/allreduce/setup,file={place}/setup",
        "-chardev", f"socket,id=console,path={place}/console.sock,server=on,wait=off,logfile={place}/console.log,logappend=on",
        "-serial", "chardev:console", "-qmp", f"unix:{place}/monitor.sock,server=on,wait=off",
        "-pidfile", f"{place}/pid", "-daemonize",
    ]  # fmt: skip


def pid(machine: Machine) -> int | None:
    """Return the process of a machine that runs."""
    try:
        number = int((machine.directory / "pid").read_text(encoding="utf-8"))
        words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return number if f"{machine.directory}/pid".encode() in words else None


def cut_power(machine: Machine) -> None:
    """End a machine at once: what its kernel has not written is lost, as when the power fails."""
    number = pid(machine)
    if number is not None:
        os.kill(number, signal.SIGKILL)
        _gone(machine, 10)


def shut_down(machine: Machine, seconds: float = 120) -> None:
    """Press the power button and wait; a machine that does not react loses its power."""
    if pid(machine) is None:
        return
    ask(machine, "system_powerdown")
    if not _gone(machine, seconds):
        cut_power(machine)


def _gone(machine: Machine, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while pid(machine) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def ask(machine: Machine, command: str, **arguments: Any) -> Any:
    """Give QEMU's monitor a command (https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html); its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(machine.directory / "monitor.sock"))
        lines = _lines(connection)
        next(lines)  # the greeting
        for one in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            connection.sendall(json.dumps(one).encode() + b"\n")
            answer = next(line for line in lines if "event" not in line)
            if "error" in answer:
                raise LabError(f"{machine.name}: {command}: {answer['error']['desc']}")
    return answer["return"]


def _lines(connection: socket.socket) -> Iterator[dict[str, Any]]:
    with connection.makefile(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def clear() -> None:
    """End the machines of this checkout that no file tells of any more, and remove their cables."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended
        if any(word.startswith(f"{PLACE}/") and word.endswith("/pid") for word in words):
            os.kill(int(path.parent.name), signal.SIGKILL)
            for tap in re.findall(r"ifname=(\w+)", " ".join(words)):
                subprocess.run(["ip", "link", "delete", tap], capture_output=True, check=False)


def remove(machine: Machine) -> None:
    """Remove a machine with its disks and its cable."""
    cut_power(machine)
    subprocess.run(["ip", "link", "delete", machine.tap], capture_output=True, check=False)
    shutil.rmtree(machine.directory, ignore_errors=True)
