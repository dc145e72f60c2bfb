# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every alert has a page that says what to do, and there is no page without an alert; the index names all."""

import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.alerts import load
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.programs import known_services

from tools.docs.runbooks import TITLES, runbooks

RUNBOOKS = Path(__file__).resolve().parents[4] / "docs" / "runbooks"
NAMES = [one.alert for one in load()]
SECTIONS = ["What it means", "How to confirm", "What to do"]


def test_pages_are_those_of_the_alerts():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_to_do(name):
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n") and re.findall(r"(?m)^## (.*)$", text) == SECTIONS
    parts = re.split(r"(?m)^## .*$", text)[1:]
    assert all(len(part.strip()) > 60 for part in parts), name
    links = re.findall(r"\]\(([\w./]+)\)", text)
    assert all((RUNBOOKS / link).exists() for link in links), links


def test_the_index_names_every_alert():
    assert {one.group for one in load()} == set(TITLES)
    index = runbooks(load())
    assert re.findall(r"(?m)^\| \[(\w+)\]", index) == NAMES
    line = next(line for line in index.splitlines() if "GpuPcieLink" in line)
    assert line.count(" | ") == 3 and "pcie_width\\|pcie_generation" in line


def test_the_index_says_how_to_drain_and_what_services_are_called():
    """Pages say "drain the node" and name Debian's services; at 3 a.m. nobody looks elsewhere for the rest."""
    text = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    assert all(f"`{service}`" in text for service in known_services())
    pages = "".join((RUNBOOKS / f"{name}.md").read_text(encoding="utf-8") for name in NAMES)
    assert (
        "rain the node" in pages
        and "scontrol update nodename=NODE state=drain" in text
        and "kubectl cordon NODE" in text
    )
