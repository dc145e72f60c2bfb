# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel keeps of a lab whose checkout was removed, or whose machine was cut off: containers, bridge, mounts."""

import json
import subprocess

from . import network, paths, podman
from .machines import qemu
from .progress import say


def clear_when_orphaned():
    """A checkout that has no lab yet inherits none: netavark would take an old bridge, with its old address."""
    if not paths.LAB.exists() and (paths.RUN.exists() or network.bridge_exists()):
        say("clearing what an earlier checkout at this place left running")
        clear()


def clear():
    """Kill this checkout's containers and machines, take its bridge down, undo its mounts; podman's own books may be gone."""
    enter = podman.entering() if podman.namespace_alive() else []
    for container in _containers():
        subprocess.run([*enter, "runc", "delete", "--force", container], capture_output=True, check=False)
    qemu.clear()
    network.remove()
    podman.dismantle()


def _containers():
    """Ids of the containers that runc knows below this checkout's storage."""
    listed = subprocess.run(["runc", "list", "--format", "json"], capture_output=True, text=True, check=False).stdout
    return [one["id"] for one in json.loads(listed or "null") or [] if one["bundle"].startswith(f"{paths.LAB}/")]
