# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update of the collection brings, for tests of locks."""

import copy
from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

NEWER = "99.0.0"


def newest_pytorch(tables=None):
    """Return the PyTorch that the tables, those of data/stack unless given, have for Debian 12 without a GPU."""
    return resolve({"os": "debian 12"}, tables)["stack"]["environments"][0]["frameworks"]["pytorch"]


def difference(tables=None):
    """Return what a plan says that renewing would change, once the row is added."""
    return f"environments.main.frameworks.pytorch: {newest_pytorch(tables)} -> {NEWER}"


def with_newer_pytorch(tables):
    """Return the tables as they might be after the next release of PyTorch: one row more."""
    subjects = copy.deepcopy(tables.subjects)
    subjects["torch"] = _added(subjects["torch"], newest_pytorch(tables))
    return Tables("2027.01.01", subjects)


def add_newer_pytorch(collection):
    """One row more in the tables of the collection in that directory, and a new version of them."""
    tables = Path(collection) / "data" / "stack"
    torch = yaml.safe_load((tables / "torch.yml").read_text(encoding="utf-8"))
    (tables / "torch.yml").write_text(yaml.safe_dump(_added(torch, newest_pytorch())), encoding="utf-8")
    (tables / "version.yml").write_text('table_version: "2027.01.01"\n', encoding="utf-8")


def _added(torch, version):
    """Return a table with a release that is like the one of that version."""
    row = next(row for row in torch["rows"] if row["version"] == version)
    return {**torch, "rows": [*torch["rows"], {**copy.deepcopy(row), "version": NEWER}]}
