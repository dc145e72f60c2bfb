# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapter of plugin_utils.benchmark.collect and words."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _benchmark_document
short_description: Merge the results of a benchmark's runs into one document
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Returns what C(benchmark.json) holds, with lines that say what was found.
positional: run_id, finished, reference
options:
  _input:
    description: Each with C(name) and C(nodes) of a run, and C(result), what M(allreduce.gpu.torchrun) returned on the first of them.
    type: list
    elements: dict
    required: true
  run_id:
    description: Name of the benchmark.
    type: str
    required: true
  finished:
    description: When it ended, as ISO 8601.
    type: str
    required: true
  reference:
    description: Figures to compare the training with, as role P(allreduce.gpu.benchmark#role) takes them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
__found: "{{ __results | allreduce.gpu._benchmark_document('20261123T150000', '2026-11-23T15:20:00Z') }}"
"""

RETURN = r"""
_value:
  description:
    - C(document); C(lines) to show; C(verdict), a sentence that names the runs which failed and is empty without any; C(slow), the
      number of nodes and kinds of figures that are slower than their peers.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..plugin_utils.benchmark.collect import collect
from ..plugin_utils.benchmark.words import summary
from ..plugin_utils.documents.benchmark import Benchmark
from ..plugin_utils.documents.parsing import parse


def benchmark_document(
    results: Iterable[Mapping[str, Any]], run_id: str, finished: str, reference: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the document and its summary."""
    document = collect(results, run_id, finished, reference)
    return {"document": document, **summary(parse(Benchmark, document))}


class FilterModule:
    """Filter allreduce.gpu._benchmark_document."""

    def filters(self) -> dict:
        return {"_benchmark_document": benchmark_document}
