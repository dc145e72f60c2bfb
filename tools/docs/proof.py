# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe what is tested on a distribution, in the words of README and documents."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

from ..supported import Scenario, knows, site_roles

MEANING = """\
* *full run*: a Molecule scenario runs `site.yml` on two bare hosts, once more without a change and in check mode,
  then `verify.yml`, a training over both hosts and `report.yml`;
* *on a replica*: a host that answers like the distribution, with its package manager and stub packages
  ([lab](lab.md)); elsewhere it is the distribution itself, with the real driver of its archive."""


def shown(tables: Tables) -> list[dict]:
    """Return the rows of the distributions that something is tested on."""
    return [row for row in tables.rows("distros") if row["scenario"]]


def title(tables: Tables, row: Mapping) -> str:
    """Return a distribution's name for people."""
    return f"{tables.subjects['distros']['names'][row['id']]} {row['version']}"


def page(row: Mapping) -> str:
    """Return the file name of a distribution's page."""
    return f"{row['id']}-{row['version']}.md"


def tested(row: Mapping, known: Mapping[str, Scenario]) -> str:
    """Return True if the job is tested on a distribution, and on what kind of host."""
    if row["scenario"] is None:
        return "no"
    return "full run" + (", on a replica" if known[row["scenario"]].replica else "")


def remarks(tables: Tables, checkout: Path) -> str:
    """Return the distributions that are only planned for, and the role of `site` at which some of them stop."""
    untested = [row for row in tables.rows("distros") if not row["scenario"]]
    lines = [f"Planned for, but not tested: {_grouped(tables, untested)} ([stack](stack.md))."]
    for role in site_roles(checkout):
        refused = [row for row in tables.rows("distros") if not knows(checkout / "roles" / role, row)]
        if refused:
            lines.append(
                f"Role `{role}` refuses {_grouped(tables, refused)}: `site` ends there, and says what to request instead."
            )
    return "\n".join(line for text in lines for line in textwrap.wrap(text, 120, break_on_hyphens=False))


def _grouped(tables: Tables, rows: Iterable[Mapping]) -> str:
    """Return names of distributions, each with its versions: `Ubuntu 18.04 and 26.04, Debian 12`."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(tables.subjects["distros"]["names"][row["id"]], []).append(row["version"])
    return "; ".join(f"{name} {_listed(versions)}" for name, versions in found.items())


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
