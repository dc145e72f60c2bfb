# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role rdma, and refuse invalid values before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...problems.problem import Problem
from ..options import as_list

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "rdma_state": "absent",
    "rdma_stack": "inbox",
    "rdma_subnet_manager": False,
    "rdma_peermem": "auto",
    "rdma_gpudirect": True,
    "rdma_names": "",
    "rdma_fixed_names": {},
    "rdma_ipoib": {},
    "rdma_roce": {},
    "rdma_interfaces": [],
    "rdma_traffic_class": "",
}
ROCE = ("dscp", "priority", "pfc", "ets", "cnp")
# Those that have parts, and an example.
PARTS = {"cnp": "{dscp: 48, priority: 6}", "ets": "{0: 50, 3: 50}"}
# Bytes: kernel, infiniband/ipoib.rst; a datagram has what InfiniBand's largest packet leaves.
LARGEST = {"datagram": 4092, "connected": 65520}
_GUID = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){3}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_INTERFACE = re.compile(r"[^\s/:]{1,15}")


@dataclass(frozen=True)
class Roce:
    """The fabric: which traffic loses nothing. ets: {priority: percentage or strict}; cnp_*: of congestion notifications."""

    dscp: int
    priority: int
    pfc: tuple[int, ...]
    ets: dict[int, int | str] = field(default_factory=dict)
    cnp_dscp: int | None = None
    cnp_priority: int | None = None


@dataclass(frozen=True)
class Request:
    """The variables; roce: None where no fabric is declared."""

    peermem: str = "auto"
    gpudirect: bool = True
    names: str = ""
    fixed_names: dict[str, str] = field(default_factory=dict)
    ipoib: dict[str, dict[str, Any]] = field(default_factory=dict)
    roce: Roce | None = None
    interfaces: tuple[str, ...] = ()
    traffic_class: str = ""


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of the variables; those that are not set have their role's default."""
    given = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    return Request(
        peermem=str(given["rdma_peermem"]),
        gpudirect=boolean(given["rdma_gpudirect"], strict=False),
        names=str(given["rdma_names"]),
        fixed_names={str(guid).lower(): str(name) for guid, name in given["rdma_fixed_names"].items()},
        ipoib={str(name): dict(wanted) for name, wanted in given["rdma_ipoib"].items()},
        roce=_roce(given["rdma_roce"]) if given["rdma_roce"] else None,
        interfaces=tuple(map(str, as_list(given["rdma_interfaces"]))),
        traffic_class=str(given["rdma_traffic_class"]),
    )


def _roce(given: Mapping[str, Any]) -> Roce:
    cnp = given.get("cnp") or {}
    priority = int(given["priority"])
    return Roce(
        dscp=int(given["dscp"]),
        priority=priority,
        pfc=tuple(sorted({int(one) for one in given.get("pfc") or [priority]})),
        ets={int(key): value if value == "strict" else int(value) for key, value in (given.get("ets") or {}).items()},
        cnp_dscp=int(cnp["dscp"]) if "dscp" in cnp else None,
        cnp_priority=int(cnp["priority"]) if "priority" in cnp else None,
    )


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that are not valid or not offered; no fact of a node is needed for it."""
    if variables.get("rdma_stack") == "doca":
        yield Problem("rdma_no_doca", "doca")
    for guid, name in (variables.get("rdma_fixed_names") or {}).items():
        if not _GUID.fullmatch(str(guid).lower()) or not _NAME.fullmatch(str(name)):
            yield Problem("rdma_no_fixed_name", str(guid), {"value": name})
    for name in as_list(variables.get("rdma_interfaces")):
        if not _INTERFACE.fullmatch(str(name)):
            yield Problem("rdma_no_interface_name", str(name))
    if variables.get("rdma_traffic_class") and not _is_number(variables["rdma_traffic_class"], 255, base=0):
        yield Problem("rdma_no_traffic_class", str(variables["rdma_traffic_class"]))
    for name, wanted in (variables.get("rdma_ipoib") or {}).items():
        yield from _ipoib_problems(str(name), wanted)
    if variables.get("rdma_roce"):
        yield from _roce_problems(variables["rdma_roce"])


def _ipoib_problems(name: str, wanted: Any) -> Iterator[Problem]:
    mode = wanted.get("mode", "datagram") if isinstance(wanted, Mapping) else None
    if mode not in LARGEST or set(wanted) - {"mode", "mtu"} or not _INTERFACE.fullmatch(name):
        yield Problem("rdma_no_ipoib", name, {"value": wanted})
    elif not _is_number(wanted.get("mtu", LARGEST[mode]), LARGEST[mode], 576):
        yield Problem("rdma_no_mtu", name, {"mode": mode, "largest": LARGEST[mode], "value": wanted["mtu"]})


def _roce_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    unknown = sorted(set(map(str, given)) - set(ROCE))
    if unknown:
        yield Problem("rdma_unknown_roce", unknown[0], {"known": list(ROCE)})
    flat = [key for key in PARTS if given.get(key) and not isinstance(given[key], Mapping)]
    if flat:
        yield from (Problem("rdma_no_parts", key, {"value": given[key], "example": PARTS[key]}) for key in flat)
        return
    pfc, cnp = given.get("pfc") or [], given.get("cnp") or {}
    numbers = [("dscp", given.get("dscp"), 63), ("priority", given.get("priority"), 7)]
    numbers += [("pfc", one, 7) for one in pfc] if isinstance(pfc, (list, tuple)) else [("pfc", pfc, -1)]
    numbers += [(f"cnp.{key}", value, {"dscp": 63, "priority": 7}.get(str(key), -1)) for key, value in cnp.items()]
    wrong = [(key, value, most) for key, value, most in numbers if not _is_number(value, most)]
    for key, value, most in wrong:
        yield Problem("rdma_no_number", key, {"value": value, "most": max(most, 7)})
    if not wrong and pfc and int(given["priority"]) not in {int(one) for one in pfc}:
        yield Problem("rdma_lossy", str(given["priority"]), {"pfc": list(pfc)})
    if not wrong and given.get("ets"):
        yield from _ets_problems(given["ets"], int(given["priority"]))


def _ets_problems(ets: Mapping[Any, Any], priority: int) -> Iterator[Problem]:
    """Yield the problems of shares: priority 0 has what no other class gets, and the sum is the whole link."""
    shares = {str(key): value for key, value in ets.items()}
    wrong = [
        key
        for key, value in shares.items()
        if not _is_number(key, 7) or not (value == "strict" or _is_number(value, 100))
    ]
    total = sum(int(value) for key, value in shares.items() if key not in wrong and value != "strict")
    if wrong or total != 100 or not {"0", str(priority)} <= set(shares):
        yield Problem("rdma_no_ets", str(priority), {"value": dict(ets)})


def _is_number(value: Any, most: int, least: int = 0, base: int = 10) -> bool:
    try:
        return not isinstance(value, bool) and least <= int(str(value), base) <= most
    except ValueError:
        return False
