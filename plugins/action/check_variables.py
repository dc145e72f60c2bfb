# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of check_variables: reads declared options and every host's variable names."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from ansible.plugins.action import ActionBase

from ..plugin_utils.preflight.variables import declared_options, describe, find_unknown, summarize_hosts

ROLES = Path(__file__).absolute().parents[2] / "roles"


class ActionModule(ActionBase):
    """Fails on variables that begin like a role's and are not declared by it."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Compare names; one pass over all hosts of the inventory, no connection."""
        super().run(tmp, task_vars)
        _unused, arguments = self.validate_argument_spec({"ignore": {"type": "list", "elements": "str", "default": []}})
        hosts_of = self._hosts_of_names(task_vars)
        findings = find_unknown(hosts_of, self._declared(), arguments["ignore"])
        unknown = [
            dict(finding._asdict(), message=describe(finding, self._where(hosts_of[finding.name], task_vars)))
            for finding in findings
        ]
        errors = [entry["message"] for entry in unknown if entry["fatal"]]
        result = {
            "changed": False,
            "unknown": unknown,
            "checked": len(hosts_of),
            "warnings": [entry["message"] for entry in unknown if not entry["fatal"]],
        }
        if errors:
            result.update(failed=True, msg=" ".join(errors))
        return result

    def _declared(self):
        paths = sorted(ROLES.glob("*/meta/argument_specs.yml"))
        return declared_options({path.parts[-3]: self._loader.load_from_file(str(path)) or {} for path in paths})

    @staticmethod
    def _hosts_of_names(task_vars):
        """Variable name -> hosts that have it; names set on the play itself have no host."""
        hosts_of = defaultdict(set)
        hostvars = task_vars["hostvars"]
        for host in task_vars["groups"]["all"]:
            for name in hostvars.raw_get(host):
                hosts_of[name].add(host)
        for name in task_vars:
            hosts_of.setdefault(name, set())
        return hosts_of

    @staticmethod
    def _where(hosts, task_vars):
        return "set for " + summarize_hosts(hosts, task_vars["groups"]) if hosts else "set in the play"
