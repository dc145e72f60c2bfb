# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift as plain values: facts in, records that Ansible and JSON can hold out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..documents.comparison import Comparison
from ..documents.observed import Observed
from ..documents.parsing import parse
from .desired import desired
from .packaged import Desired
from .reconcile import compare, drift


def observe(state: Mapping[str, Any] | None) -> Observed:
    """Return fact gpu_node_state as a value; without one, nothing was measured. Raise DocumentError."""
    return parse(Observed, state, "gpu_node_state") if state else Observed(measured=False)


def node_drift(
    stack: Mapping[str, Any] | None, state: Mapping[str, Any] | None, variables: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Return the differences of a node as records; raise DocumentError for facts of the wrong shape."""
    return [record(one) for one in drift(*both(stack, state, variables))]


def node_comparisons(
    stack: Mapping[str, Any] | None, state: Mapping[str, Any] | None, variables: Mapping[str, Any]
) -> list[Comparison]:
    """Return every comparison of a node; raise DocumentError for facts of the wrong shape."""
    return compare(*both(stack, state, variables))


def both(
    stack: Mapping[str, Any] | None, state: Mapping[str, Any] | None, variables: Mapping[str, Any]
) -> tuple[Desired, Observed]:
    """Return the desired and the observed state of a node; raise DocumentError for facts of the wrong shape."""
    observed = observe(state)
    return desired(stack or {}, variables, observed.secure_boot), observed


def record(comparison: Comparison) -> dict[str, str]:
    """Return a comparison as a mapping of texts."""
    return {**asdict(comparison), "status": comparison.status.value, "remedy": comparison.remedy.value}
