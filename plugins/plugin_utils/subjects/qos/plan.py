# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of module qos that bring a node to its shares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..rdma.plan import escape
from .decide import Shaping
from .nftables import table
from .request import Request

DECLARATION = "/etc/allreduce/qos.json"
TABLE_FILE = "/etc/allreduce/qos.nft"
UNITS = "/etc/systemd/system"
INSTANCE = "allreduce-qos@"


def plan(shapings: Sequence[Shaping], wanted: Request, boot: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {interfaces, table, digest, files}. boot: the program and the units that shape again."""
    text, digest = table(wanted, [one.name for one in shapings])
    interfaces = [json.loads(json.dumps(asdict(one))) for one in shapings]
    declared = json.dumps({"digest": digest, "interfaces": interfaces}, indent=1, sort_keys=True) + "\n"
    files = [{"path": path, "content": content} for path, content in ((DECLARATION, declared), (TABLE_FILE, text))]
    return {
        "interfaces": interfaces,
        "table": text,
        "digest": digest,
        # Who trains with whom is not for other readers.
        "files": [*({**one, "mode": "0600"} for one in files), *map(dict, boot), *map(_link, shapings)],
    }


def _link(one: Shaping) -> dict[str, str]:
    """Return the link that starts the unit whenever the kernel makes the interface (again)."""
    name = escape(one.name)
    device = f"{UNITS}/sys-subsystem-net-devices-{name}.device.wants"
    return {"path": f"{device}/{INSTANCE}{name}.service", "link": f"{UNITS}/{INSTANCE}.service"}
