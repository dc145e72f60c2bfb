# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of module firewall that bring a node to its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....module_utils.host.nft import FILE
from ....module_utils.settings.firewall_facts import PORT_RANGE, RESERVED
from ...documents.firewall import Kernel
from . import firewalld, nftables
from .decide import Rules
from .ports import Ranges, parse_range, union, words
from .request import Request

SYSCTL = "/etc/sysctl.d/90-allreduce-firewall.conf"


def plan(rules: Rules, wanted: Request, kernel: Kernel, boot: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {owner, files, values}. boot: files that load our table at boot, where there is one."""
    texts = firewalld.files(rules) if rules.owner == "firewalld" else {FILE: nftables.table(rules)}
    found = [] if rules.owner == "firewalld" else [dict(one) for one in boot]
    kernel_values = sysctl(wanted, kernel)
    if kernel_values:
        texts[SYSCTL] = _sysctl_file(kernel_values)
    values = [{"path": f"/proc/sys/{key.replace('.', '/')}", "value": value} for key, value in kernel_values.items()]
    # firewalld's own files have that mode; the table names who may come in.
    mode = "0644" if rules.owner == "firewalld" else "0600"
    files = [
        {"path": path, "content": text, "mode": "0644" if path == SYSCTL else mode} for path, text in texts.items()
    ]
    return {"owner": rules.owner, "files": [*files, *found], "values": values}


def sysctl(wanted: Request, kernel: Kernel) -> dict[str, str]:
    """Return the kernel's keys of strict mode. What was reserved before stays so."""
    if not wanted.strict:
        return {}
    reserved = union([*parse_reserved(kernel.reserved_before), *wanted.ports, *wanted.open_ports])
    first, last = wanted.port_range
    return {_key(PORT_RANGE): f"{first} {last}", _key(RESERVED): ",".join(words(reserved))}


def parse_reserved(text: str | None) -> Ranges:
    """Return the ports of net.ipv4.ip_local_reserved_ports."""
    found = (parse_range(one) for one in (text or "").split(",") if one)
    return union(one for one in found if one)


def _key(path: str) -> str:
    return path.removeprefix("/proc/sys/").replace("/", ".")


def _sysctl_file(values: Mapping[str, str]) -> str:
    lines = [f"{key} = {value}\n" for key, value in values.items()]
    return "".join([
        nftables.HEADER,
        "# NCCL and gloo listen on ephemeral ports that no variable pins; peers may reach these, and services keep theirs.\n",
        *lines,
    ])  # fmt: skip
