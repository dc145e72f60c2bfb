# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU-node hosts of the lab: up, down, and the inventory that reaches them."""

import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from . import hardware, image, interpreters, leftovers, network, paths, podman, proxy, replicas, services, wheels
from .machines import qemu
from .mirror import build as mirror
from .progress import LabError, say

# What make demo leaves in the lab's inventory.
GENERATED = [
    paths.CHECKOUT / "inventories" / "lab" / name
    for name in ("hosts.yml", ".known_hosts", ".reports", "stack.lock.yml", "python.locks")
]

PROVISION = """
set -eu
ssh-keygen -A > /dev/null
# As Debian's installer writes it: the host's own name on a loopback address.
[ -s /etc/hosts ] || printf '127.0.0.1\\tlocalhost\\n127.0.1.1\\t%s\\n' "$(hostname)" > /etc/hosts
printf '%s\\n' '{key}' > /home/ansible/.ssh/authorized_keys
chown ansible: /home/ansible/.ssh/authorized_keys
chmod 600 /home/ansible/.ssh/authorized_keys
[ ! -d /etc/apt ] || printf 'Acquire::http::Proxy "{proxy}";\\nAcquire::http::Proxy::{services} "DIRECT";\\n' \\
  > /etc/apt/apt.conf.d/01lab-cache
{setup}
# sshd gave up during boot, when there were no host keys yet.
for unit in ssh sshd; do
  [ ! -e /usr/lib/systemd/system/$unit.service ] || {{ systemctl reset-failed $unit; systemctl restart $unit; break; }}
done
cat /etc/ssh/ssh_host_ed25519_key.pub
"""


def up(
    name,
    count,
    inventory=None,
    machine=None,
    distribution=replicas.DEFAULT,
    use_mirror=False,
    variables=None,
    pythons=True,
    wheel_set=wheels.DEFAULT,
    proxied=False,
):
    """Bring hosts NAME-1 … NAME-COUNT up (those missing) and write their inventory; its path.

    ``machine`` names the simulated machine that new hosts are, or one for each; None: this one, as containers see it.
    ``variables``: more for the inventory.
    ``use_mirror``: Debian hosts, too, take NVIDIA's packages from the stub mirror (replicas always do).
    ``pythons``: offer them real interpreters in addition to their own, which takes a minute to pack once.
    ``wheel_set``: what they install from, a name in wheels.yml.
    ``proxied``: hosts that reach everything outside through an inspecting proxy only.
    """
    kind = replicas.get(distribution)
    podman.prepare()
    wheels.ensure(wheel_set)
    network.ensure()
    base = image.ensure(kind)
    services.ensure(base if distribution == replicas.DEFAULT else image.ensure(replicas.get(replicas.DEFAULT)))
    mirror_url = (proxy if proxied else services).mirror_url(name)
    if proxied:
        proxy.ensure()
    if use_mirror or kind.archive:
        mirror.ensure(kind.nvidia, *([kind.archive] if kind.archive else []))
    if pythons:
        interpreters.publish(mirror.SERVED / "interpreters", f"{mirror_url}/interpreters", f"{name}.json")
    existing = {host["name"]: host for host in podman.containers(f"allreduce.lab={name}") if _runs(host["name"])}
    surplus = [host for host in existing if int(host.rpartition("-")[2]) > count]
    _remove(surplus)
    wanted = [f"{name}-{i}" for i in range(1, count + 1)]
    machines = dict(
        zip(wanted, [machine] * count if machine is None or isinstance(machine, str) else machine, strict=True)
    )
    missing = [host for host in wanted if host not in existing]
    if missing:
        say(f"starting {', '.join(missing)}")
    taken = taken_addresses()
    addresses = {host: existing[host]["address"] for host in wanted if host in existing}
    addresses.update(zip(missing, network.free_addresses(len(missing), taken), strict=True))
    for host in missing:
        services.start(
            base, host, addresses[host], {"allreduce.lab": name}, *hardware.options(name, host, machines[host])
        )
    setup = _setup(mirror_url, kind) + (proxy.confinement() if proxied else "")
    with ThreadPoolExecutor() as pool:
        keys = dict(zip(wanted, pool.map(lambda host: _provision(host, setup), wanted), strict=True))
    for host in wanted:  # also where an earlier `up` was cut off
        if machines[host]:
            hardware.install(name, host)
    for host in wanted:
        wait_for_ssh(host, addresses[host])
    path = inventory or paths.lab(name) / "hosts.yml"
    each = {host: {"report_remark": _remark(kind, machines[host])} for host in wanted}
    view = wheels.get(wheel_set).view
    common = {
        "python_env_find_links": [services.wheels_url(view)],
        **({"python_env_python_downloads": f"{mirror_url}/interpreters/{name}.json"} if pythons else {}),
        **mirror_variables(mirror_url, kind, use_mirror),
        **(proxy.variables(view) if proxied else {}),
        **(variables or {}),
    }
    write_inventory(path, addresses, keys, each, common)
    say(f"{count} host{'s' if count > 1 else ''} up: {', '.join(f'{h} ({addresses[h]})' for h in wanted)}")
    return path


def taken_addresses():
    """Return the addresses of all containers and machines, those that are switched off as well."""
    return {host["address"] for host in podman.containers("allreduce.address")} | {
        one.address for one in qemu.machines()
    }


def _remark(kind, machine):
    """Results of a lab host say what is not real about it."""
    system = f"a Debian {kind.suite} that answers like {kind.name}" if kind.is_replica else "a container"
    return f"lab host: {system}" + (f", simulated machine {machine}" if machine else "")


def down(name):
    """Remove the hosts of one lab and its inventory."""
    hosts = [host["name"] for host in podman.containers(f"allreduce.lab={name}")]
    if hosts:
        say(f"removing {', '.join(hosts)}")
    _remove(hosts)
    subprocess.run(["rm", "-rf", paths.lab(name)], check=True)


def purge():
    """Remove every host, the network, images, storage, keys and mounts; downloads stay."""
    if paths.LAB.exists():
        podman.prepare()
        _remove([host["name"] for host in podman.containers("allreduce.address")])
        podman.podman("system", "reset", "--force", check=False)
    leftovers.clear()
    subprocess.run(["rm", "-rf", paths.LAB, *GENERATED], check=True)


def execute(host, argv):
    """Run a command in a host as root; its exit status."""
    return subprocess.run(podman.command("exec", "--interactive", host, *argv), check=False).returncode


def _runs(host):
    """A host that stopped, as after a restart of this machine, is started again; one that cannot be is created again."""
    state = podman.podman("inspect", "--format", "{{.State.Status}}", host).strip()
    if state == "running":
        return True
    try:
        podman.podman("start", host)
    except LabError as error:
        say(f"{host} was {state} and cannot be started ({error}): making it anew")
        _remove([host])
        return False
    return True


def _remove(hosts, attempts=4):
    for left in range(attempts if hosts else 0, 0, -1):
        try:
            podman.podman("rm", "--force", "--ignore", "--time", "5", "--volumes", *hosts)
            return
        except LabError:  # a mount of the dying container can stay busy for a moment
            if left == 1:
                raise
            time.sleep(3)


def _setup(mirror_url, kind):
    """Shell lines that tell a replica where its distribution's packages are."""
    if not kind.archive or not kind.is_replica:
        return ""
    url = f"{mirror_url}/{mirror.place(kind.archive)}"
    return replicas.sources(kind, url, mirror.key("archive").read_text(encoding="utf-8"))


def mirror_variables(mirror_url, kind, use_mirror):
    """Return inventory variables of hosts that take NVIDIA's packages from the stub mirror."""
    variables = {"lab_distribution": kind.name, "lab_replica": kind.is_replica}
    if kind.retired and kind.is_replica:
        variables["base_dnf_mirror"] = f"{mirror_url}/{mirror.place(kind.archive)}"
    if kind.name.startswith("rhel") and kind.is_replica:
        epel = f"{mirror_url}/{mirror.place(kind.archive)}/epel"
        variables["base_epel_release"] = f"{epel}/epel-release-latest.noarch.rpm"
        variables["base_epel_key"] = f"{epel}/RPM-GPG-KEY-EPEL"
        variables["base_epel_key_fingerprint"] = mirror.fingerprint("archive")
    if use_mirror or kind.archive:
        variables["cuda_repository_mirror"] = f"{mirror_url}/{mirror.REPOSITORIES}"
        variables["cuda_repository_key"] = str(mirror.key())
        variables["cuda_repository_key_fingerprint"] = mirror.fingerprint()
    return variables


def _provision(host, setup):
    """Wait for the host, let the lab's key in; the host's public key."""
    services.wait_until_booted(host)
    script = PROVISION.format(
        key=ssh_key(), proxy=services.apt_proxy(), services=network.services_address(), setup=setup
    )
    return podman.podman("exec", "--interactive", host, "sh", input_text=script).strip()


def wait_for_ssh(host, address, seconds=60):
    """An address that another host had a moment ago can be unreachable for some seconds more.

    Only sshd's greeting counts: a gateway may take connections to addresses that no host has.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((address, 22), timeout=2) as connection:
                if connection.recv(4) == b"SSH-":
                    return
                error = "something else than SSH answers"
        except OSError as caught:
            error = caught
        if time.monotonic() > deadline:
            raise LabError(f"{host} does not answer at {address}, port 22: {error}")
        time.sleep(0.5)


def ssh_key():
    """Return the lab's public key."""
    public = paths.SSH_KEY.with_suffix(".pub")
    if not public.exists():
        raise LabError(f"{public} is missing: run `lab up` again")
    return public.read_text(encoding="utf-8").strip()


def ensure_ssh_key():
    """Return the lab's own key pair, made once."""
    paths.LAB.mkdir(parents=True, exist_ok=True)
    if not paths.SSH_KEY.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "allreduce lab", "-f", str(paths.SSH_KEY)]
        subprocess.run(argv, check=True)


def write_inventory(path, addresses, keys, each, variables):
    """Write an inventory and its known hosts; keys: the public key of each, each: its variables."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.with_name(".known_hosts")  # a dot: Ansible would parse it as inventory
    known.write_text("".join(f"{addresses[h]} {' '.join(keys[h].split()[:2])}\n" for h in addresses), encoding="utf-8")
    inventory = {
        "gpu_nodes": {
            "hosts": {host: {"ansible_host": address, **each[host]} for host, address in addresses.items()},
            "vars": {
                "ansible_user": "ansible",
                "ansible_ssh_private_key_file": str(paths.SSH_KEY),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes",
                "base_ca_certificates": _authorities(),
                "python_env_no_index": True,
                **variables,
            },
        }
    }
    text = "---\n# Written by `python -m tests.lab up`; do not edit.\n" + yaml.safe_dump(inventory, sort_keys=False)
    path.write_text(text, encoding="utf-8")


def _authorities():
    """Certificate authorities this machine's owner added: behind an inspecting proxy hosts need them too."""
    return sorted(str(path) for path in Path("/usr/local/share/ca-certificates").glob("*.crt"))
