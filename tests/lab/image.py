# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image lab hosts start from: a Debian server as an installer leaves it, with SSH and one admin user."""

import hashlib
import os
import subprocess

from . import paths
from .podman import podman
from .progress import LabError, say

SUITE = "bookworm"
# What an installed server has and a minimal bootstrap lacks; nothing that a role installs.
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "udev",
    "python3",
    "openssh-server",
    "iproute2",
    "iputils-ping",
    "sudo",
    "ca-certificates",
    "kmod",
    "pciutils",
    "gpgv",
    "apt-utils",
    "procps",
    "unattended-upgrades",
    "needrestart",
]

# Runs in the new root ($1) and, for an image from a registry, in the container (root is /).
CUSTOMIZE = r"""
set -eu
root=${1%/}
# Host keys belong to a host, not to an image; so does the machine id.
rm -f "$root"/etc/ssh/ssh_host_*
: > "$root/etc/machine-id"
chroot "$root/" useradd --create-home --shell /bin/bash ansible
mkdir -m 700 "$root/home/ansible/.ssh"
chroot "$root/" chown ansible: /home/ansible/.ssh
printf 'ansible ALL=(ALL) NOPASSWD: ALL\n' > "$root/etc/sudoers.d/ansible"
chmod 440 "$root/etc/sudoers.d/ansible"
# A container must not set the clock of the machine it runs on.
mkdir -p "$root/etc/systemd/system/chrony.service.d"
printf '[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd $DAEMON_OPTS -x\n' \
  > "$root/etc/systemd/system/chrony.service.d/lab.conf"
# The timers would take the package lock at a moment of their own.
chroot "$root/" systemctl mask -q apt-daily.timer apt-daily-upgrade.timer
"""


def _recipe():
    return hashlib.sha256("\n".join([SUITE, *PACKAGES, CUSTOMIZE]).encode()).hexdigest()[:12]


def ensure():
    """Name of the image, made when it is missing.

    LAB_IMAGE names a distribution image in a registry to start from; else mmdebstrap makes one,
    from LAB_DEBIAN_MIRROR when that is set.
    """
    base = os.environ.get("LAB_IMAGE")
    tag = f"localhost/allreduce-lab:{SUITE}-{_recipe()}" if not base else _registry_tag(base)
    if _exists(tag):
        return tag
    if base:
        _from_registry(base, tag)
    else:
        _from_archive(tag)
    return tag


def _exists(tag):
    return bool(podman("images", "--quiet", tag).strip())


def _registry_tag(base):
    return f"localhost/allreduce-lab:registry-{hashlib.sha256((base + _recipe()).encode()).hexdigest()[:12]}"


def _from_archive(tag):
    archive = paths.IMAGES / f"{SUITE}-{_recipe()}.tar"
    if not archive.exists():
        say(f"building the {SUITE} image with mmdebstrap (about half a minute)")
        paths.IMAGES.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part.tar")
        hook = paths.LAB / "customize.sh"
        hook.write_text(CUSTOMIZE, encoding="utf-8")
        mirror = [os.environ["LAB_DEBIAN_MIRROR"]] if os.environ.get("LAB_DEBIAN_MIRROR") else []
        made = subprocess.run(
            [
                "mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(PACKAGES)}",
                f"--customize-hook=sh {hook} \"$1\"", SUITE, str(part), *mirror,
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise LabError(f"mmdebstrap could not build {SUITE}: {made.stderr.strip().splitlines()[-1:]}")
        part.rename(archive)
    say(f"importing the {SUITE} image")
    podman("import", "--quiet", archive, tag)


def _from_registry(base, tag):
    say(f"building the host image from {base}")
    recipe = paths.LAB / "Containerfile"
    (paths.LAB / "customize.sh").write_text(CUSTOMIZE, encoding="utf-8")
    recipe.write_text(
        f"FROM {base}\n"
        f"RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y {' '.join(PACKAGES)} && apt-get clean\n"
        "COPY customize.sh /tmp/customize.sh\nRUN sh /tmp/customize.sh / && rm /tmp/customize.sh\n",
        encoding="utf-8",
    )
    podman("build", "--quiet", "--tag", tag, "--file", recipe, paths.LAB)
