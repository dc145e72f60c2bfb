# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A table's file: read and written so that comments, order and quotes stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString


def read(path: Path) -> CommentedMap:
    """Return the content of a table."""
    return _yaml().load(path.read_text(encoding="utf-8"))


def write(path: Path, document: CommentedMap) -> None:
    """Write a table; unchanged, it is the same to the byte."""
    with path.open("w", encoding="utf-8") as stream:
        _yaml().dump(document, stream)


def styled(value: Any) -> Any:
    """Return a value in the style of the tables: versions, ranges and days quoted, lists in one line, mappings in lists over several."""
    if isinstance(value, Mapping):
        nested = any(isinstance(one, (list, Mapping)) for one in value.values())
        found = CommentedMap((styled(name), styled(one)) for name, one in value.items())
        return found if nested or "tag" in value else _in_one_line(found)
    if isinstance(value, list):
        found = CommentedSeq(styled(one) for one in value)
        return found if any(isinstance(one, Mapping) for one in value) else _in_one_line(found)
    return DoubleQuotedScalarString(value) if isinstance(value, str) and value[:1] in tuple("0123456789<>=~") else value


def _in_one_line(found: Any) -> Any:
    found.fa.set_flow_style()
    return found


def _yaml() -> YAML:
    found = YAML()
    found.preserve_quotes, found.explicit_start, found.width = True, True, 100_000
    found.indent(mapping=2, sequence=4, offset=2)
    found.representer.add_representer(
        type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return found
