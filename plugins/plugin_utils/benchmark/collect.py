# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one document of what the runs of a benchmark left on the hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..documents.benchmark import Document
from ..documents.parsing import DocumentError, parse

FORMAT = 1


def collect(
    results: Iterable[Mapping[str, Any]], run_id: str, finished: str, reference: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the content of benchmark.json.

    results: {name, nodes, result} of each run and group, where result is what action torchrun returned on the group's first node;
    reference: figures to compare them with
    """
    runs = [_run(one["name"], [str(node) for node in one["nodes"]], one["result"]) for one in results]
    return {"format": FORMAT, "run_id": run_id, "finished": finished, "runs": runs, "reference": list(reference)}


def _run(name: str, nodes: list[str], result: Mapping[str, Any]) -> dict[str, Any]:
    training = result.get("training") or {}
    document = training.get("metrics")
    base = {"name": name, "nodes": nodes}
    if training.get("status") != "succeeded":
        reason = str(result.get("msg") or "it left no result").splitlines()[0]
        return {**base, "status": "failed", "reason": reason, "document": None}
    if not _is_readable(document):
        return {**base, "status": "failed", "reason": "it left no readable document", "document": None}
    return {**base, "status": "succeeded", "reason": "", "document": document}


def _is_readable(document: Any) -> bool:
    try:
        parse(Document, document)
    except (DocumentError, RecursionError):
        return False
    return bool(document.get("format") == FORMAT)
