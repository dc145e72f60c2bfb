# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs in a lab host, or in a machine with a kernel of its own.

The host sees the PCI tree of a machine from tests/lab/nvml from boot on. Its NVML is there once a driver's packages are
installed, and answers once `modprobe nvidia` (or a reboot) has "loaded" the module of that version: so a driver that was
installed but not loaded, and a library that is newer than the loaded module, look as on real hosts.
"""

import re
import shutil
from pathlib import Path

import yaml

from .. import paths
from ..nvml import machines, recording
from ..podman import podman
from ..progress import LabError

MOUNT = "/srv/machine"
FILES = Path(__file__).parent / "files"
DRIVER_PROC = Path("proc") / "driver" / "nvidia"
INSTALL = f"""
set -eu
install -m 755 {MOUNT}/files/modprobe /usr/local/sbin/modprobe
install -m 755 {MOUNT}/files/nvidia-smi /usr/local/bin/nvidia-smi
ln -sfn {MOUNT} /etc/simulated-nvml
for unit in nvidia-persistenced allreduce-gpu-settings allreduce-health; do
  install -D -m 644 {MOUNT}/files/$unit.conf /etc/systemd/system/$unit.service.d/lab.conf
done
install -m 644 -t /etc/systemd/system {MOUNT}/files/lab-machine*.service {MOUNT}/files/lab-machine*.path
! systemd-detect-virt --quiet --container || systemctl mask -q systemd-modules-load  # a container loads no modules
systemctl daemon-reload
systemctl enable -q --now lab-machine.service lab-machine-library.path
"""


def names():
    """Return the machines a host can be."""
    return [machine().name for machine in machines.MACHINES]


def options(lab, host, name):
    """Write the machine that a host is to be; the options its container needs."""
    if name is None:
        return []
    return ["--volume", f"{record(lab, host, name)}:{MOUNT}", "--label", f"allreduce.machine={name}"]


def record(lab, host, name):
    """Write the machine that a host is to be; the directory, which the host has as MOUNT when INSTALL runs there."""
    found = [machine() for machine in machines.MACHINES if machine().name == name]
    if not found:
        raise LabError(f"machine {name!r} is unknown: use one of {', '.join(names())}")
    root = paths.lab(lab) / host
    shutil.rmtree(root, ignore_errors=True)
    # What is around the GPUs is the lab host's own: told of 128 processors, a build there would start as many compilers.
    recording.record(found[0].without_driver(), root, around=False)
    recording.record(found[0], root / "loaded", around=False)
    (root / "proc" / "driver").mkdir(parents=True, exist_ok=True)
    (root / "sys" / "class").mkdir(exist_ok=True)
    _bring_files(root)
    (root / "branches").write_text("".join(_branches()), encoding="utf-8")
    _template(root / "loaded" / DRIVER_PROC / "version")
    (root / "loaded" / "profile").rename(root / "profile.loaded")
    shutil.copy(_library(), root / "libnvidia-ml.so.1")
    return root


def install(lab, host):
    """Let a running host see its machine, at once and after every boot. A host of an older checkout gets this one's files."""
    _bring_files(paths.lab(lab) / host)
    podman("exec", "--interactive", host, "sh", input_text=INSTALL)


def _bring_files(root):
    shutil.copytree(FILES, root / "files", dirs_exist_ok=True)


def _branches():
    """Yield the newest CUDA of each driver branch, as NVML tells it: 535 12020."""
    text = (paths.CHECKOUT / "data" / "stack" / "drivers.yml").read_text(encoding="utf-8")
    for row in yaml.safe_load(text)["rows"]:
        major, minor = row["cuda"].split(".")
        yield f"{row['branch']} {int(major) * 1000 + int(minor) * 10}\n"


def _template(version):
    """The driver's version is that of the packages which the host will install."""
    if version.exists():
        version.write_text(re.sub(r"(Module(?: for \S+)?  )\S+", r"\1@VERSION@", version.read_text()))


def _library():
    place = paths.LAB / "libnvidia-ml.so.1"
    newest = max(source.stat().st_mtime for source in recording.SOURCES)
    if not place.exists() or place.stat().st_mtime < newest:
        recording.build_library(place)
    return place
