# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation and the roles' metadata say what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.generate import generated

CHECKOUT = Path(__file__).resolve().parents[4]
DOCUMENTS = generated(CHECKOUT)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_what_is_generated_is_up_to_date(path):
    have = path.read_text(encoding="utf-8") if path.exists() else None
    assert have == DOCUMENTS[path], f"{path.relative_to(CHECKOUT)} is stale; run: python -m tools.docs"


def test_no_page_is_left_over():
    pages = CHECKOUT / "docs" / "distributions"
    assert set(pages.iterdir()) == {path for path in DOCUMENTS if path.parent == pages}


def test_the_metadata_of_every_role_is_generated():
    assert {path for path in DOCUMENTS if path.name == "main.yml"} == set(CHECKOUT.glob("roles/*/meta/main.yml"))
