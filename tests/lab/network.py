# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bridge the lab's hosts share: a free private subnet, addresses that survive a reboot of the host."""

import hashlib
import ipaddress
import json
import secrets
import subprocess
from datetime import UTC, datetime

from . import paths
from .progress import LabError

BRIDGE = f"arlab{paths.DIGEST}"
FIRST_HOST = 11  # .1 is the gateway, .2 the services


def ensure():
    """Return the subnet (ipaddress.IPv4Network); the network is created when it is missing.

    The file is written by hand because podman 4.3 cannot be told the bridge's name, and two
    checkouts would both take `podman1`.
    """
    if not _file():
        subnet = _free_subnet()
        # A name of its own each time: podman remembers addresses by the network's name, beyond a crash of the lab.
        unique = f"allreduce-lab-{paths.DIGEST}-{secrets.token_hex(3)}"
        network = {
            "name": unique,
            "id": hashlib.sha256(unique.encode()).hexdigest(),
            "driver": "bridge",
            "network_interface": BRIDGE,
            "created": datetime.now(UTC).isoformat(),
            "subnets": [{"subnet": str(subnet), "gateway": str(subnet[1])}],
            "ipv6_enabled": False,
            "internal": False,
            "dns_enabled": False,
            "ipam_options": {"driver": "host-local"},
        }
        (paths.LAB / "networks" / f"{unique}.json").write_text(json.dumps(network, indent=2), encoding="utf-8")
    return ipaddress.ip_network(json.loads(_file().read_text(encoding="utf-8"))["subnets"][0]["subnet"])


def name():
    """Return the network's name, as podman knows it."""
    ensure()
    return _file().stem


def _file():
    return next((paths.LAB / "networks").glob("allreduce-lab-*.json"), None)


def services_address():
    """Address of the container that serves packages and wheels."""
    return str(ensure()[2])


def free_addresses(count, taken):
    """COUNT addresses for hosts that are not in TAKEN."""
    free = [str(ip) for ip in list(ensure().hosts())[FIRST_HOST - 1 :] if str(ip) not in taken]
    if len(free) < count:
        raise LabError(f"{count} hosts do not fit into {ensure()}: ask for at most {len(free)}")
    return free[:count]


def _free_subnet():
    routes = json.loads(subprocess.run(["ip", "-j", "route"], capture_output=True, text=True, check=True).stdout)
    used = [ipaddress.ip_network(r["dst"]) for r in routes if r["dst"] != "default"]
    # Two checkouts begin at different places: a lab without running hosts has no route that would show its subnet.
    first = int(paths.DIGEST, 16)
    for third in ((first + i) % 254 + 1 for i in range(254)):
        candidate = ipaddress.ip_network(f"10.203.{third}.0/24")
        if not any(candidate.overlaps(net) for net in used if net.version == 4):
            return candidate
    raise LabError("no free subnet in 10.203.0.0/16: remove another lab first")


def bridge_exists():
    """Return True if the kernel has the bridge, no matter who made it."""
    return subprocess.run(["ip", "link", "show", BRIDGE], capture_output=True, check=False).returncode == 0


def remove():
    """Forget the network, and take the bridge down (podman does so with the last container; a crash may leave it)."""
    if _file():
        _file().unlink()
    subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)
