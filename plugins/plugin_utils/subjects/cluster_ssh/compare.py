# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what lets the training user reach the other nodes with what was recorded of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...cluster.ssh import authorized_keys
from ...documents.comparison import Comparison, Remedy, Status, compared

COMPONENT = "ssh"
KEYS = "authorized_keys"
# As ssh -G prints it where no host key is checked.
_UNCHECKED = ("false", "no", "off")


def compare_ssh(account: Mapping[str, Any] | None, user: str, extra: Iterable[str]) -> list[Comparison]:
    """Return the comparisons; none where role cluster_ssh has not worked.

    account: what module node_probe read back; extra: the site's own lines of authorized_keys
    """
    if not account:
        return []
    return [*_keys(account, user, extra), *_root(account), *_client(account.get("client"))]


def _keys(account: Mapping[str, Any], user: str, extra: Iterable[str]) -> Iterator[Comparison]:
    found = account.get(KEYS) or {"state": "absent"}
    if found["state"] != "file":
        observed = "" if found["state"] == "absent" else found["state"]
        yield compared(COMPONENT, KEYS, f"a file of {user}'s", observed, False, Remedy.APPLY, "keys")
        return
    wanted = hashlib.sha256(authorized_keys(account["nodes"], extra).encode()).hexdigest()
    same, keys = found["sha256"] == wanted, f"as written, with the keys of {len(account['nodes'])} nodes"
    mode = f"{found['mode']} {found['owner']}"
    yield compared(COMPONENT, KEYS, keys, keys if same else "edited", same, Remedy.APPLY, "keys")
    yield compared(COMPONENT, f"mode of {KEYS}", f"0600 {user}", mode, mode == f"0600 {user}", Remedy.APPLY, "keys")


def _root(account: Mapping[str, Any]) -> Iterator[Comparison]:
    names = ", ".join(account["root_keys"])
    if names:
        yield Comparison(
            COMPONENT, f"{KEYS} of root", "no training user", f"takes {names}", Status.UNWANTED, Remedy.LINE, "root"
        )
    else:
        yield compared(COMPONENT, f"{KEYS} of root", "no training user", "no training user", True, Remedy.LINE, "root")


def _client(options: Mapping[str, Any] | None) -> Iterator[Comparison]:
    checking, agent = ((options or {}).get(name) for name in ("stricthostkeychecking", "forwardagent"))
    checked = None if checking is None else checking not in _UNCHECKED
    forwards = None if agent is None else agent == "no"
    yield compared(COMPONENT, "StrictHostKeyChecking", "yes", _shown(checked, checking), checked, Remedy.LINE, "client")
    yield compared(COMPONENT, "ForwardAgent", "no", agent, forwards, Remedy.LINE, "client")


def _shown(agrees: bool | None, observed: str | None) -> str | None:
    return "yes" if agrees else observed
