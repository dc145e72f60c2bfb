# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try the ways to other nodes with packages of full size that must not be fragmented. Changes nothing."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
import socket
from concurrent.futures import ThreadPoolExecutor

from ..machine.files import FileTree
from .network import ADDRESSES, read_link
from .probes import resolve, run

# Headers of IP and ICMP before what ping sends, and what ping can send at most (ping(8) of iputils).
HEADERS = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
LARGEST = 65507
# Option of a connected socket: the largest packet that its way takes, as far as the kernel knows (linux/in.h, linux/in6.h).
PATH_MTU = {socket.AF_INET: (socket.IPPROTO_IP, 14), socket.AF_INET6: (socket.IPPROTO_IPV6, 24)}
AT_A_TIME = 32
PING = ["ping", "-n", "-q", "-i", "0.2", "-W", "1"]
_RTT = re.compile(r"min/avg/max\S* = ([0-9.]+)/")


def try_network(asked, peers):
    """Return {own_name: where the node's own name leads, link: see ``read_link``, paths: see ``try_paths``}, or None.

    asked: {name, address, peers: names of PEERS to try}, or None; paths is None also where no interface has the address.
    """
    if asked is None:
        return None
    code, lines = run(ADDRESSES, timeout=15)
    link = read_link(FileTree(), "\n".join(lines) if code == 0 else None, asked["address"])
    chosen = {name: peers[name] for name in asked["peers"] if name in peers}
    return {
        "own_name": resolve(asked["name"]),
        "link": link,
        "paths": try_paths(asked["address"], link["mtu"], chosen) if link["mtu"] else None,
    }


def try_paths(address, mtu, peers):
    """Return {peer: its way} from the interface with the address and the MTU; peers: {name: address}.

    None where there is no ping. Each way is as ``try_path`` returns it.
    """
    if run(["ping", "-V"], timeout=10)[0] is None:
        return None
    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        answers = {name: pool.submit(try_path, address, mtu, peer) for name, peer in peers.items()}
        return {name: answer.result() for name, answer in answers.items()}


def try_path(address, mtu, peer):
    """Return {size, full, reached, rtt, path_mtu, source} of the way to an address.

    size: bytes of the full packet with its headers; full: whether one arrived and was answered; reached: whether a small one
    was; rtt: milliseconds; path_mtu: what the kernel knows to pass now; source: the address that the kernel leaves by.
    """
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    data = min(mtu - HEADERS[family], LARGEST)
    full, rtt = ping(address, peer, ["-c", "3", "-M", "do", "-s", str(data)])
    reached = full
    if not full:
        reached, rtt = ping(address, peer, ["-c", "2", "-s", "56"])
    source, path_mtu = route(family, peer)
    return {
        "size": data + HEADERS[family], "full": full, "reached": reached, "rtt": rtt, "path_mtu": path_mtu, "source": source,
    }  # fmt: skip


def ping(address, peer, options):
    """Return (whether there was an answer, the shortest round trip in milliseconds or None)."""
    code, lines = run(PING + ["-I", address] + options + [peer], timeout=15)
    return code == 0, parse_rtt(lines)


def parse_rtt(lines):
    found = _RTT.search("\n".join(lines))
    return float(found.group(1)) if found else None


def route(family, peer):
    """Return (the address that packets to the peer leave by, the largest that passes); nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((peer, 9))
            return probe.getsockname()[0], probe.getsockopt(*PATH_MTU[family])
    except OSError:
        return None, None
