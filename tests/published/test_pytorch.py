# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables against the package index: which published releases they lack. `make tables` adds them."""

import pytest

from tools.tables import document, index, torch
from tools.tables.__main__ import TABLE, pythons


def test_every_stable_release_of_pytorch_has_a_row():
    rows = document.read(TABLE)["rows"]
    try:
        published = index.releases("torch", pythons(rows))
    except index.NoAnswer as problem:
        pytest.skip(f"the package index does not answer: {problem}")
    assert torch.missing(rows, published) == [], "run: make tables"
