# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan all nodes of a play at once; documented in plugins/modules/cluster_plan.py. Opens no connection."""

from __future__ import annotations

from functools import partial
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version

from ..plugin_utils.cluster.hosts import cluster_problems, misplaced
from ..plugin_utils.documents.door import fitting
from ..plugin_utils.node.screen import show_errors
from ..plugin_utils.planning import lock
from ..plugin_utils.planning.plan import READS, plan
from ..plugin_utils.planning.plan_text import plan_table
from ..plugin_utils.planning.variables import Variables
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.subjects.sentences import describe, describe_all, told


class ActionModule(ActionBase):
    """Look at the variables of each node once, and return the plan, its text and its lock."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail where nodes cannot form a cluster; a plan with refusals is one that the role shows first."""
        super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            {
                "lock": {"type": "path"},
                "renew": {"type": "bool", "default": False},
                "explain": {"type": "str"},
            }
        )
        variables = task_vars or {}
        path, renew = options["lock"] or "", options["renew"]
        # Renewed for the whole inventory, the lock starts empty; else what it has of other hosts stays.
        old = "" if renew and variables.get("ansible_limit") is None else path
        try:
            hosts, unfit = fitting(self._hosts(variables), READS)
            together, strange = misplaced(hosts, variables["hostvars"])
            if problems := cluster_problems(together):
                raise ProblemError(*problems)
            found = plan(hosts, ansible_version, path or None, renew, options["explain"] or "")
            found["warnings"] += [describe(problem) for problem in [*unfit, *strange]]
            text = lock.planned_text(found, old) if path else ""
        except ProblemError as error:
            show_errors(self._display, map(told, error.problems))
            raise AnsibleActionFail(describe_all(error.problems)) from None
        return {"changed": False, "plan": found, "lines": plan_table(found), "lock": text}

    def _hosts(self, variables: dict[str, Any]) -> dict[str, Variables]:
        hostvars = variables["hostvars"]
        names = variables["ansible_play_hosts_all"]
        return {host: Variables(hostvars.raw_get(host), partial(hostvars.__getitem__, host)) for host in names}
