# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of docs/supported.md and docs/cluster.md: what is supported, and the roles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

from ..supported import Scenario, scenarios
from . import proof
from .distributions import stacks
from .markdown import table


def supported(tables: Tables, checkout: Path) -> str:
    """Return the distributions, what is tested on each, its driver branches and toolkits; then the newest releases of PyTorch."""
    known = scenarios(checkout)
    rows = [_system(tables, row, known) for row in proof.shown(tables)]
    systems = table(("distribution", "tested", "driver branches", "also from its own archive", "CUDA"), rows)
    newest = list(reversed(tables.rows("torch")))[:6]
    torch = table(("PyTorch", "Python", "builds", "driver from"), [_torch(tables, row) for row in newest])
    return "\n\n".join([proof.MEANING, systems, proof.remarks(tables, checkout), torch])


def roles(checkout: Path) -> str:
    """Each role with the first words of its documentation."""
    specs = sorted(checkout.glob("roles/*/meta/argument_specs.yml"))
    return table(
        ("role", "outcome"),
        [(f"[{spec.parts[-3]}](../roles/{spec.parts[-3]}/README.md)", _outcome(spec)) for spec in specs],
    )


def _outcome(spec: Path) -> str:
    return yaml.safe_load(spec.read_text(encoding="utf-8"))["argument_specs"]["main"]["short_description"]


def _system(tables: Tables, row: dict, known: Mapping[str, Scenario]) -> tuple:
    found = [stack["driver"] for stack in reversed(stacks(tables, row))]
    branches = {
        source: ", ".join(one["branch"] for one in found if one["source"] == source)
        for source in ("nvidia", "distribution")
    }
    link = f"[{proof.title(tables, row)}](distributions/{proof.page(row)})"
    ended = " (end of life)" if row["status"] == "eol" else ""
    cuda = f"{row['cuda_first'] or 'not seen'} – {row.get('cuda_last', tables.rows('cuda')[-1]['version'])}"
    tested = proof.tested(row, known)
    return link + ended, tested, branches["nvidia"] or "–", branches["distribution"] or "–", cuda


def _torch(tables: Tables, row: dict) -> tuple:
    builds = [one for one in row["builds"] if one["tag"] != "cpu"]
    floors = list(dict.fromkeys(tables.driver_floor(one["cuda"]) for one in builds))
    return (
        row["version"],
        f"{row['python'][0]} – {row['python'][-1]}",
        ", ".join(one["tag"] for one in builds),
        ", ".join(sorted(floors)),
    )
