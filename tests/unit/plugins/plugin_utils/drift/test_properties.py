# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing differs from the plan exactly where no role has anything to do, and where nothing was mutated that matters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift as checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.builds import missing_builds
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.desired import desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packages import named
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.reconcile import drift
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons, observe, record
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.change import is_held
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.plan import component_plan, steps
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.comparisons import counts, items
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).parent))

from states import as_planned, mutated, stacks, states  # noqa: E402 (a neighbour, found through the line above)

EXAMPLES = max(250, settings().max_examples)
# What roles look at in the differences, besides packages and builds.
STEPS = {
    Remedy.SOURCES, Remedy.SERVICE, Remedy.ENROL, Remedy.LOAD, Remedy.REBOOT, Remedy.REPAIR, Remedy.ENVIRONMENT,
}  # fmt: skip


def work(stack, state):
    """Return what the roles would do, and what nobody knows."""
    observed = observe(state)
    wanted = desired(stack, {}, observed.secure_boot)
    plans = [plan for plan in (component_plan(name, wanted) for name in BY_HOLD) if plan]
    found = [(plan.name, steps(plan, observed)) for plan in plans if steps(plan, observed)]
    found += [("hold", plan.name) for plan in plans if _is_released(plan, observed)]
    builds = missing_builds(wanted.stack.driver, observed) if wanted.stack.driver else None
    if builds and (builds.kernels or builds.without_headers or not builds.possible):
        found.append(("build", builds))
    differences = drift(wanted, observed)
    found += [("step", one) for one in differences if one.remedy in STEPS or one.status is Status.UNKNOWN]
    # NVIDIA's installer runs where its version, or the module of a kernel, lacks; other modules come with packages.
    return found + [("module", one) for one in differences if one.remedy is Remedy.INSTALL and one.kind != "package"]


def _is_released(plan, observed):
    """Return True if a role would hold packages that are there; where none has run yet, all that comes later."""
    there = named(plan.held, observed.packages or {})
    return bool(there) and observed.has_run and not is_held(plan, observed)


@settings(max_examples=EXAMPLES)
@given(stacks())
def test_a_node_that_is_as_planned_has_no_drift(stack):
    state = as_planned(stack)
    assert drift(desired(stack, {}), observe(state)) == []
    assert work(stack, state) == []


@settings(max_examples=EXAMPLES)
@given(states())
def test_there_is_drift_exactly_where_roles_have_something_to_do(found):
    stack, state = found
    observed = observe(state)
    assert (drift(desired(stack, {}, observed.secure_boot), observed) == []) == (work(stack, state) == [])


@settings(max_examples=EXAMPLES)
@given(states())
def test_roles_verify_and_report_give_one_answer(found):
    """The roles would do nothing, verify passes, and the report says as planned: all or none."""
    stack, state = found
    comparisons = node_comparisons(stack, state, {})
    passes = {check["status"] for check in checks.checks(comparisons)} <= {"passed"}
    as_written = json.loads(json.dumps({"comparisons": [record(one) for one in comparisons]}))
    rows = items(parse(NodeVerification, as_written).comparisons)
    assert (work(stack, state) == []) == passes == (counts(rows) == (0, 0))


@settings(max_examples=EXAMPLES)
@given(mutated())
def test_there_is_drift_exactly_where_a_mutation_matters(found):
    stack, state, harm = found
    assert (drift(desired(stack, {}), observe(state)) == []) == (harm == [])


@given(stacks())
def test_a_node_that_was_not_measured_is_never_as_planned(stack):
    assert drift(desired(stack, {}), observe({}))
