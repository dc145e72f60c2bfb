# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images lab hosts start from: a server as an installer leaves it, with SSH and one admin user."""

import hashlib
import os
import subprocess

from . import paths
from .interpreters import elf
from .mirror import system
from .podman import podman
from .progress import LabError, say

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

# Runs in the new root ($1; / in the container of an image from a registry), with files of the build machine below $2.
CUSTOMIZE = r"""
set -eu
root=${1%/} aside=$2
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
# Interpreters (interpreters/elf.py) need the build machine's glibc or a newer one: a copy of it aside where the host's is older.
mkdir -p "$root{aside}"
own=$(chroot "$root/" ldd --version | sed -n '1s/.* //p')
if [ "$(printf '%s\n' "$own" {glibc} | sort -V | head -n 1)" = {glibc} ]; then
  ln -sf /lib64/ld-linux-x86-64.so.2 "$root{loader}"
else
  mkdir -p "$root{copy}" && cp "$aside"/glibc/* "$root{copy}/"
  ln -sf {copy}/ld-linux-x86-64.so.2 "$root{loader}"
fi
# The timers would take the package lock at a moment of their own.
[ ! -e "$root/usr/bin/apt-get" ] || chroot "$root/" systemctl mask -q apt-daily.timer apt-daily-upgrade.timer
"""


# The same in a distribution's own image from a registry, by the package manager there.
INSTALL = {
    "debian": f"apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y {' '.join(PACKAGES)} && apt-get clean",
    "el": "dnf install -y systemd dbus python3 openssh-server iproute iputils sudo ca-certificates kmod pciutils procps-ng"
    " hostname dnf-plugins-core && dnf clean all",
}


def customization(distribution):
    """Shell lines that make a server of a new root $1, with the files of prepare() below $2."""
    text = CUSTOMIZE
    for mark, value in {
        "{aside}": elf.ASIDE, "{copy}": elf.GLIBC, "{loader}": elf.LOADER, "{glibc}": elf.glibc_version()
    }.items():  # fmt: skip
        text = text.replace(mark, value)
    return text + distribution.disguise() + _install(distribution)


def _install(distribution):
    """Shell lines that install the packages of prepare()."""
    if not system.packages(distribution):
        return ""
    install = "rpm -i" if distribution.family == "el" else "apt-get -qq install -y --no-install-recommends"
    return f"""
mkdir "$root/tmp/lab" && cp "$aside"/packages/{distribution.archive}/* "$root/tmp/lab/"
chroot "$root/" sh -c 'DEBIAN_FRONTEND=noninteractive {install} /tmp/lab/*' && rm -r "$root/tmp/lab"
"""


def prepare(distribution):
    """Return the files of the build machine for customize: its glibc, and packages of the distribution; their directory."""
    place = paths.LAB / "aside"
    elf.copy_glibc(place / "glibc")
    system.write(distribution, place / "packages")
    return place


def _recipe(distribution):
    parts = [
        distribution.suite,
        "force-unsafe-io",
        *PACKAGES,
        *distribution.packages,
        customization(distribution),
        system.recipe(distribution),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def ensure(distribution):
    """Name of the image of a replicas.Distribution, made when it is missing.

    LAB_REGISTRY names a registry whose image of the distribution to start from, LAB_IMAGE any one image; without them
    mmdebstrap makes one, from LAB_DEBIAN_MIRROR when that is set.
    """
    base = distribution.image
    tag = (
        _registry_tag(distribution) if base else f"localhost/allreduce-lab:{distribution.name}-{_recipe(distribution)}"
    )
    if _exists(tag):
        return tag
    if base:
        _from_registry(distribution, tag)
    else:
        _from_archive(distribution, tag)
    return tag


def _exists(tag):
    return bool(podman("images", "--quiet", tag).strip())


def _registry_tag(distribution):
    recipe = hashlib.sha256((distribution.image + _recipe(distribution)).encode()).hexdigest()[:12]
    return f"localhost/allreduce-lab:registry-{recipe}"


def _from_archive(distribution, tag):
    archive = paths.IMAGES / f"{distribution.name}-{_recipe(distribution)}.tar"
    if not archive.exists():
        replica = f" as {distribution.name}" if distribution.is_replica else ""
        aside = prepare(distribution)  # says what it does, before the longer part
        say(f"building the {distribution.suite} image{replica} with mmdebstrap (usually a minute)")
        paths.IMAGES.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part.tar")
        hook = paths.LAB / f"customize-{distribution.name}.sh"
        hook.write_text(customization(distribution), encoding="utf-8")
        mirror = [os.environ["LAB_DEBIAN_MIRROR"]] if os.environ.get("LAB_DEBIAN_MIRROR") else []
        made = subprocess.run(
            [
                # Here and on the hosts: their disk need not survive a power cut, and syncing each file takes minutes.
                "mmdebstrap", "--quiet", "--variant=apt", "--dpkgopt=force-unsafe-io",
                f"--include={','.join(PACKAGES + distribution.packages)}",
                f"--customize-hook=sh {hook} \"$1\" {aside}", distribution.suite, str(part), *mirror,
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise LabError(f"mmdebstrap could not build {distribution.name}: {made.stderr.strip().splitlines()[-1:]}")
        part.rename(archive)
    say(f"importing the {distribution.name} image")
    podman("import", "--quiet", archive, tag)


def _from_registry(distribution, tag):
    aside = prepare(distribution)
    say(f"building the host image from {distribution.image}")
    recipe = paths.LAB / "Containerfile"
    (paths.LAB / "customize.sh").write_text(customization(distribution), encoding="utf-8")
    recipe.write_text(
        f"FROM {distribution.image}\n"
        f"RUN {INSTALL[distribution.family]}\n"
        f"COPY customize.sh /tmp/customize.sh\nCOPY {aside.name} /tmp/aside\n"
        "RUN sh /tmp/customize.sh / /tmp/aside && rm -r /tmp/customize.sh /tmp/aside\n",
        encoding="utf-8",
    )
    podman("build", "--quiet", "--tag", tag, "--file", recipe, paths.LAB)
