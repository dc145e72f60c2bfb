# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the digest of a compiled Horovod depends on."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import build_digest

SYSTEM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
BUILD = {"version": "0.28.1", "source": {"file": "h.tar.gz", "sha256": "0"}, "frameworks": ["pytorch"], "tools": []}
MAIN = {
    "name": "main", "python": "3.11", "accelerator": "cpu", "requirements": ["torch==2.13.0"], "frameworks": {"pytorch": "2.13.0"},
    "index": {"name": "cpu", "url": "https://example.org/cpu"}, "interpreter": {"source": "distribution", "path": None, "packages": []}, "build": BUILD,
}  # fmt: skip
LOCK = {"torch": "2.13.0", "numpy": "2.4.6"}


def digest(**change):
    case = {"environment": MAIN, "system": SYSTEM, "locked": LOCK, **change}
    return build_digest(parse(Environment, case["environment"]), parse(System, case["system"]), case["locked"])


def test_it_is_the_same_in_every_run():
    """Wheels on nodes are kept by it: another digest compiles them all again."""
    assert digest() == "cf69981f4873a5b6"


@pytest.mark.parametrize(
    "change",
    [
        {"environment": {**MAIN, "build": {**BUILD, "version": "0.28.2"}}},
        {"environment": {**MAIN, "python": "3.12"}},
        {"environment": {**MAIN, "index": None}},
        {"environment": {**MAIN, "index": {"name": "cu124", "url": "https://example.org/cpu"}}},
        {"environment": {**MAIN, "interpreter": {"source": "standalone", "path": None, "packages": []}}},
        {"environment": {**MAIN, "interpreter": None}},
        {"environment": {**MAIN, "build": None}},
        {"system": {**SYSTEM, "version": "13"}},
        {"system": {**SYSTEM, "arch": "aarch64"}},
        {"locked": {**LOCK, "torch": "2.13.1"}},
    ],
)
def test_what_changes_it(change):
    assert digest(**change) != digest()


@pytest.mark.parametrize(
    "change",
    [
        {"environment": {**MAIN, "name": "train"}},
        {"environment": {**MAIN, "index": {"name": "cpu", "url": "https://mirror.example.org/cpu"}}},
        {"locked": {**LOCK, "numpy": "2.4.7"}},
    ],
)
def test_what_does_not(change):
    assert digest(**change) == digest()
