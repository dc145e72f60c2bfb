# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The navigation of the documentation site, which Sphinx checks only when the site is built."""

from __future__ import annotations

from tools.site.build import CHECKOUT, CONTENTS, INDEX, in_order, navigation, pages


def test_every_page_is_in_the_navigation():
    patterns = [pattern for _caption, found in CONTENTS for pattern in found]
    front = {"README.md", "docs/decisions/README.md"}
    lost = [page for page in pages(CHECKOUT) if not any(page.match(one) for one in patterns) and str(page) not in front]
    assert lost == []


def test_the_navigation_names_pages_that_exist():
    names = [line for line in navigation(CHECKOUT).splitlines() if line.endswith(".md")]
    assert "docs/compatibility.md" in names
    assert [name for name in names if not (CHECKOUT / name).is_file()] == []


def test_pages_of_releases_are_in_the_order_of_their_numbers(tmp_path):
    for name in ("rocky-10", "rocky-8", "debian-12", "rocky-9"):
        (tmp_path / f"{name}.md").touch()
    assert in_order(tmp_path, "*.md") == ["debian-12.md", "rocky-8.md", "rocky-9.md", "rocky-10.md"]


def test_the_address_of_the_site_is_as_wide_as_a_phone():
    assert '<meta name="viewport" content="width=device-width' in INDEX
