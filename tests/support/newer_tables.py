# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update of the collection brings, for tests of locks."""

from pathlib import Path

import yaml

# As a plan names it: the newest PyTorch of the tables for Debian 12 without a GPU, and the row that is added.
UPDATE = "update environments.main.frameworks.pytorch: 2.13.0 -> 2.16.0"


def add_newer_pytorch(collection):
    """One row more in the tables of the collection in that directory, and a new version of them."""
    tables = Path(collection) / "data" / "stack"
    torch = yaml.safe_load((tables / "torch.yml").read_text(encoding="utf-8"))
    torch["rows"].append({**next(row for row in torch["rows"] if row["version"] == "2.13.0"), "version": "2.16.0"})
    (tables / "torch.yml").write_text(yaml.safe_dump(torch), encoding="utf-8")
    (tables / "version.yml").write_text('table_version: "2027.01.01"\n', encoding="utf-8")
