# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One container that serves the lab: an apt cache (apt-cacher-ng), the wheel directory and the stub mirror (HTTP)."""

import time
from pathlib import Path

from . import network, paths, wheels
from .mirror import build as mirror
from .podman import containers, podman
from .progress import LabError, say

NAME = f"lab-services-{paths.DIGEST}"
APT_PORT = 3142
WHEELS_PORT = 8000
MIRROR_PORT = 8001
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
SERVER = "/srv/mirror-server/server.py"
# What each source served, and what the apt cache fetched for it (traffic.py).
LOGS = {
    "apt": "/var/log/apt-cacher-ng/apt-cacher.log",
    "wheels": "/var/log/lab-wheels.log",
    "mirror": "/var/log/lab-mirror.log",
}
# Raised when the container's mounts or what runs in it change, so that one of an older checkout is made again.
EDITION = "3"

# apt-cacher-ng's package starts it at once, so the volume comes in by configuration, with the owner it needs.
SETUP = f"""
set -eu
export DEBIAN_FRONTEND=noninteractive
if ! [ -e /etc/apt-cacher-ng/zz_lab.conf ]; then
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends apt-cacher-ng >/tmp/install.log 2>&1 || {{ tail -3 /tmp/install.log >&2; exit 1; }}
  chown -R apt-cacher-ng: /srv/apt
  printf 'CacheDir: /srv/apt\\nUnbufferLogs: 1\\n' > /etc/apt-cacher-ng/zz_lab.conf
  systemctl restart apt-cacher-ng
fi
systemctl is-active -q wheels || systemd-run --quiet --unit=wheels \
  python3 {SERVER} --root /srv/wheels --port {WHEELS_PORT} --log {LOGS["wheels"]}
systemctl is-active -q mirror || systemd-run --quiet --unit=mirror \
  python3 {SERVER} --root /srv/mirror/served --faults /srv/mirror/faults --port {MIRROR_PORT} --log {LOGS["mirror"]}
"""


def apt_proxy():
    """URL of the apt cache as lab hosts reach it."""
    return f"http://{network.services_address()}:{APT_PORT}"


def wheels_url(view):
    """URL of the wheels of a view (wheels.yml) as lab hosts reach them."""
    return f"http://{network.services_address()}:{WHEELS_PORT}/{view}/"


def mirror_url(view):
    """URL of the stub repositories as lab hosts reach them; VIEW is what can be told to misbehave (mirror/faults.py)."""
    return f"http://{network.services_address()}:{MIRROR_PORT}/{view}"


def ensure(image):
    """Start the services container when it does not run."""
    running = containers("allreduce.role=services")
    current = running and running[0]["labels"].get("allreduce.edition") == EDITION
    if current and podman("inspect", "--format", "{{.State.Running}}", NAME).strip() == "true":
        return
    if running:
        podman("rm", "--force", NAME)
        if not containers("allreduce.address"):
            network.remove()  # whatever stopped the services left their address taken
    say("starting the package cache and the wheel server (usually half a minute)")
    for folder in (paths.APT_CACHE, mirror.SERVED, mirror.FAULTS):
        folder.mkdir(parents=True, exist_ok=True)
    start(
        image, NAME, network.services_address(), {"allreduce.role": "services", "allreduce.edition": EDITION},
        "--volume", f"{paths.APT_CACHE}:/srv/apt",
        "--volume", f"{wheels.local_directory()}:/srv/wheels:ro",
        "--volume", f"{mirror.HOME}:/srv/mirror:ro",
        "--volume", f"{mirror.SERVER.parent}:{SERVER.rpartition('/')[0]}:ro",
    )  # fmt: skip
    wait_until_booted(NAME)
    podman("exec", "--interactive", NAME, "sh", input_text=SETUP)


def start(image, name, address, labels, *options):
    """Start one systemd container with a fixed address."""
    podman(
        "run", "--detach", "--name", name, "--hostname", name, "--privileged", "--systemd=always",
        "--restart=always", "--shm-size=1g", "--no-hosts", "--network", network.name(), "--ip", address,
        "--label", f"allreduce.address={address}",
        *[part for key, value in labels.items() for part in ("--label", f"{key}={value}")],
        *options, image, "/sbin/init",
    )  # fmt: skip


def wait_until_booted(name, seconds=240):
    """Wait for `running`: /tmp is mounted during boot, and apt started before that fails with a misleading error."""
    deadline = time.monotonic() + seconds
    state = "unknown"
    while time.monotonic() < deadline:
        state = podman("exec", name, "systemctl", "is-system-running", check=False).strip()
        if state in ("running", "degraded"):
            return
        time.sleep(0.5)
    raise LabError(f"{name} did not boot within {seconds} s ({_why(name, state)})")


def _why(name, state):
    """A systemd that cannot have inotify instances ends at once, and the host starts again and again."""
    restarts = podman("inspect", "--format", "{{.RestartCount}}", name, check=False).strip()
    if restarts in ("", "0"):
        return f"systemd says {state or 'nothing'}"
    limit = INOTIFY.read_text(encoding="utf-8").strip()
    return f"its systemd ended {restarts} times; with many hosts {limit} inotify instances are too few: raise fs.inotify.max_user_instances"
