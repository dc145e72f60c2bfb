# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site on a phone: no page is wider than the screen, and pages of each kind are there; commands on any screen."""

from pathlib import Path

import pytest

from tests.report.page import Page

SITE = Path(__file__).resolve().parents[2] / ".cache" / "site" / "html"
# One of each kind, and those with the widest tables.
PAGES = (
    "README.html", "docs/stack.html", "docs/health.html", "docs/tuning.html", "docs/day-2.html", "roles/nvidia_driver/README.html",
    "collections/allreduce/gpu/gpu_health_module.html", "collections/allreduce/gpu/train_role.html",
    "collections/allreduce/gpu/nccl_environment_filter.html",
)  # fmt: skip


@pytest.fixture
def phone(browser):
    page = Page(browser, 375, 812)
    yield page
    page.reset()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(phone, name):
    phone.show(SITE / name)
    assert phone.ask("return document.querySelector('h1').textContent").strip()
    assert phone.ask("return document.documentElement.scrollWidth") <= phone.width


@pytest.mark.parametrize("size", [(375, 812), (1400, 900)], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", ["README.html", "docs/benchmark.html", "docs/lab.html", "docs/training.html"])
def test_commands_are_in_sight_to_their_end(browser, name, size):
    page = Page(browser, *size)
    page.show(SITE / name)
    blocks = "[...document.querySelectorAll('.rst-content pre')]"
    assert page.ask(f"return {blocks}.length")
    hidden = page.ask(f"return {blocks}.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)")
    page.reset()
    assert hidden == []


@pytest.mark.parametrize("name", ["README.html", "docs/health.html", "docs/tuning.html"])
def test_a_name_in_a_table_stays_in_one_piece(phone, name):
    phone.show(SITE / name)
    names = "[...document.querySelectorAll('table code')].filter(one => /^\\w+$/.test(one.textContent))"
    assert phone.ask(f"return {names}.length")
    assert phone.ask(f"return {names}.filter(one => one.getClientRects().length > 1).map(one => one.textContent)") == []


def test_the_front_page_leads_to_every_kind_of_page(phone):
    phone.show(SITE / "README.html")
    links = phone.ask("return [...document.querySelectorAll('nav a')].map(one => one.getAttribute('href'))")
    assert {"docs/day-2.html", "docs/glossary.html", "collections/index.html", "roles/base/README.html"} <= set(links)


def test_the_address_of_the_site_leads_to_the_front_page(phone):
    phone.show(SITE / "index.html")
    assert phone.ask("return location.pathname").endswith("README.html")
