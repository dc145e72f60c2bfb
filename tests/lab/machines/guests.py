# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines as hosts of an inventory: up, down, reached over SSH."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from .. import hosts, image, network, paths, podman, replicas, services, wheels
from ..mirror import build as mirror
from ..progress import LabError, say
from . import disk, qemu

# From the start of the firmware to SSH, on two processors that others use as well.
BOOT_SECONDS = 600
# Once, at the first boot: roles change these files later.
SETUP = """\
set -eu
modprobe virtio_net
[ ! -e /etc/lab-setup.done ] || exit 0
echo {name} > /etc/hostname
hostname {name}
# As Debian's installer writes it.
printf '127.0.0.1\\tlocalhost\\n127.0.1.1\\t%s\\n' {name} > /etc/hosts
cat > /etc/systemd/network/10-lab.network <<'END'
[Match]
MACAddress={mac}
[Network]
Address={address}/{prefix}
Gateway={gateway}
LinkLocalAddressing=no
END
rm -f /etc/resolv.conf
cat > /etc/resolv.conf <<'END'
{resolver}END
umask 077
cat > /etc/ssh/ssh_host_ed25519_key <<'END'
{private}END
cat > /home/ansible/.ssh/authorized_keys <<'END'
{authorized}
END
chown ansible: /home/ansible/.ssh/authorized_keys
umask 022
cat > /etc/ssh/ssh_host_ed25519_key.pub <<'END'
{public}END
printf 'Acquire::http::Proxy "{proxy}";\\nAcquire::http::Proxy::{services} "DIRECT";\\n' > /etc/apt/apt.conf.d/01lab-cache
touch /etc/lab-setup.done
"""


def up(
    lab: str,
    count: int,
    inventory: Path | None = None,
    distribution: str = replicas.DEFAULT,
    variables: dict[str, Any] | None = None,
    use_mirror: bool = False,
    **hardware: Any,
) -> Path:
    """Bring machines LAB-1 … LAB-COUNT up (those missing or without power), and write their inventory; its path.

    variables: more for the inventory; use_mirror: take NVIDIA's packages from the stub mirror; hardware: fields of qemu.Machine that new
    machines have.
    """
    if shutil.which(qemu.PROGRAM) is None or not qemu.FIRMWARE.is_dir():
        raise LabError("QEMU or its firmware is missing: `.ci/bootstrap test-all` installs what machines need")
    podman.prepare()
    wheels.ensure(wheels.DEFAULT)
    subnet = network.ensure()
    services.ensure(image.ensure(replicas.get(replicas.DEFAULT)))
    base = disk.ensure(distribution)
    kind = replicas.get(distribution)
    if use_mirror:
        mirror.ensure(kind.nvidia)
    known = {machine.name: machine for machine in qemu.machines(lab)}
    wanted = [f"{lab}-{number}" for number in range(1, count + 1)]
    missing = [name for name in wanted if name not in known]
    free = network.free_addresses(len(missing), hosts.taken_addresses())
    for name, address in zip(missing, free, strict=True):
        private, public = _host_key()
        known[name] = qemu.Machine(name, lab, address, public, **hardware)
        qemu.create(known[name], base, _setup(known[name], private, subnet))
    machines = [known[name] for name in wanted]
    start(*machines)
    keys = {one.name: one.host_key for one in machines}
    path = inventory or paths.lab(lab) / "hosts.yml"
    each = {one.name: {"report_remark": f"lab machine: emulated, {distribution}'s own kernel"} for one in machines}
    common = {
        "python_env_find_links": [services.wheels_url(wheels.get(wheels.DEFAULT).view)],
        **(hosts.mirror_variables(services.mirror_url(lab), kind, use_mirror=True) if use_mirror else {}),
        **(variables or {}),
    }
    hosts.write_inventory(path, {one.name: one.address for one in machines}, keys, each, common)
    say(f"{count} machine{'s' if count > 1 else ''} up: {', '.join(f'{one.name} ({one.address})' for one in machines)}")
    return path


def start(*machines: qemu.Machine) -> None:
    """Switch on the machines that are off, and wait until all let SSH in."""
    off = [one for one in machines if qemu.pid(one) is None]
    if off:
        say(f"starting {', '.join(one.name for one in off)} (usually two minutes)")
    for one in off:
        qemu.power_on(one)
    for one in machines:
        hosts.wait_for_ssh(one.name, one.address, BOOT_SECONDS)
        _wait_for_login(one)


def _wait_for_login(machine: qemu.Machine) -> None:
    """Return once users may log in, which is later than sshd answers: pam_nologin(8)."""
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectTimeout=60")
    words = [word for option in options for word in ("-o", option)]
    argv = ["ssh", "-i", str(paths.SSH_KEY), *words, f"ansible@{machine.address}", "true"]
    deadline = time.monotonic() + BOOT_SECONDS
    while (done := subprocess.run(argv, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > deadline:
            raise LabError(f"{machine.name} lets nobody in at {machine.address}: {done.stderr.strip()}")
        time.sleep(2)


def down(lab: str) -> None:
    """Remove the machines of one lab and its inventory."""
    for one in qemu.machines(lab):
        say(f"removing {one.name}")
        qemu.remove(one)
    shutil.rmtree(paths.lab(lab), ignore_errors=True)


def _host_key() -> tuple[str, str]:
    """Return a private and a public key: made here, as an emulated processor takes long and the inventory needs the public one."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
        return path.read_text(encoding="utf-8"), path.with_suffix(".pub").read_text(encoding="utf-8")


def _setup(machine: qemu.Machine, private: str, subnet: ipaddress.IPv4Network) -> str:
    return SETUP.format(
        name=machine.name, mac=machine.hardware_address, address=machine.address, prefix=subnet.prefixlen, gateway=subnet[1],
        private=private, public=machine.host_key, resolver=Path("/etc/resolv.conf").read_text(encoding="utf-8"),
        authorized=hosts.ssh_key(), proxy=services.apt_proxy(), services=network.services_address(),
    )  # fmt: skip
