# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podman with its own storage, network folder and, where the host needs it, its own cgroup2 mount.

systemd in a container wants the unified cgroup hierarchy. A host that still mounts the hybrid one
gets a private mount namespace in which /sys/fs/cgroup is cgroup2; every podman call enters it.
"""

import json
import os
import subprocess

from . import machine, paths
from .progress import LabError, say

CONTAINERS_CONF = """\
[containers]
# Hosts without the pids controller, or whose hard limits are low, refuse podman's own defaults.
pids_limit = 0
default_ulimits = ["nofile=1024:20000", "nproc=1024:2048"]
[engine]
runtime = "runc"
[network]
network_backend = "netavark"
"""


def unified_cgroups():
    """True when /sys/fs/cgroup is cgroup2 itself, as on any current desktop or server."""
    kind = subprocess.run(["stat", "-fc", "%T", "/sys/fs/cgroup"], capture_output=True, text=True, check=True)
    return kind.stdout.strip() == "cgroup2fs"


def _is_mounted(path):
    return subprocess.run(["mountpoint", "-q", str(path)], check=False).returncode == 0


def namespace_alive():
    """Return True if the mount namespace of prepare() can be entered."""
    return paths.NAMESPACE.exists() and _sh_ok(["nsenter", f"--mount={paths.NAMESPACE}", "true"])


def _sh_ok(argv):
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def prepare():
    """Create what every podman call needs; repeating it is harmless."""
    if not paths.RUN.exists():
        machine.remember()
    paths.RUN.mkdir(mode=0o700, exist_ok=True)
    paths.LAB.mkdir(parents=True, exist_ok=True)
    (paths.LAB / "networks").mkdir(exist_ok=True)
    (paths.LAB / "containers.conf").write_text(CONTAINERS_CONF, encoding="utf-8")
    if unified_cgroups() or namespace_alive():
        return
    say("this host has no unified cgroups: making a mount namespace that has")
    if not _is_mounted(paths.RUN):
        subprocess.run(["mount", "--bind", paths.RUN, paths.RUN], check=True)
    subprocess.run(["mount", "--make-private", paths.RUN], check=True)
    paths.NAMESPACE.touch()
    script = "mount --make-rprivate / && umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup"
    made = subprocess.run(
        ["unshare", f"--mount={paths.NAMESPACE}", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise LabError(
            f"cannot mount cgroup2 in a private namespace ({made.stderr.strip()}): boot with unified cgroups"
        )


def entering():
    """Return the prefix of commands for the lab's containers."""
    return [] if unified_cgroups() else ["nsenter", f"--mount={paths.NAMESPACE}"]


def command(*args):
    """Return the argv that runs `podman ARGS` with the lab's storage."""
    return [
        *entering(),
        "env",
        f"CONTAINERS_CONF={paths.LAB / 'containers.conf'}",
        "podman",
        "--root", str(paths.LAB / "storage"),
        "--runroot", str(paths.RUN / "storage"),
        "--tmpdir", str(paths.RUN / "libpod"),  # else removing one checkout's lab makes podman forget another's
        "--network-config-dir", str(paths.LAB / "networks"),
        *[str(arg) for arg in args],
    ]  # fmt: skip


def podman(*args, input_text=None, check=True):
    """Run podman; its standard output. LabError with podman's own last words when it fails."""
    done = subprocess.run(
        command(*args), input=input_text, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    if check and done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise LabError(f"podman {' '.join(map(str, args[:3]))} failed: {words[-1] if words else done.returncode}")
    return done.stdout


def containers(label):
    """[{name, address, labels}] of all containers that carry LABEL (`key` or `key=value`)."""
    rows = json.loads(podman("ps", "--all", "--filter", f"label={label}", "--format", "json") or "[]")
    return [
        {"name": row["Names"][0], "address": row["Labels"].get("allreduce.address"), "labels": row["Labels"]}
        for row in rows or []
    ]


def dismantle():
    """Undo prepare()."""
    if _is_mounted(paths.NAMESPACE):
        subprocess.run(["umount", paths.NAMESPACE], check=False)
    if _is_mounted(paths.RUN):
        subprocess.run(["umount", paths.RUN], check=False)
    subprocess.run(["rm", "-rf", paths.RUN], check=False)
    machine.restore()
