# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` under Mitogen's strategy, which keeps one interpreter running on each host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .measure import Cost, playbook


def variables() -> dict[str, str]:
    """Return the environment variables that choose the strategy."""
    package = find_spec("ansible_mitogen")
    if not package or not package.origin:
        raise RuntimeError("mitogen is not installed: requirements-dev.txt has it, `make bootstrap` installs it")
    return {
        "ANSIBLE_STRATEGY_PLUGINS": str(Path(package.origin).parent / "plugins" / "strategy"),
        "ANSIBLE_STRATEGY": "mitogen_linear",
    }


def site(inventory: Path, *options: str) -> Cost:
    """Return the cost of `site`; RuntimeError where it fails or Mitogen did not carry it out."""
    cost: Cost = playbook("site", inventory, *options, variables=variables())
    refuse_others(cost.actions)
    return cost


def refuse_others(actions: Iterable[Mapping[str, Any]]) -> None:
    """Raise RuntimeError for a run whose modules Mitogen did not all send: Ansible's own strategy goes unnoticed otherwise."""
    found = list(actions)
    others = sorted({row["task"] for row in found if row["by"] != "mitogen"})
    if others or not found:
        raise RuntimeError(f"Mitogen's strategy was not in use: {', '.join(others) or 'no module was sent'}")
