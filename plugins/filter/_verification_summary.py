# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a verification in a few lines."""

DOCUMENTATION = """
name: _verification_summary
short_description: Summarize a verification in a few lines
author: The allreduce.gpu authors (@allreduce)
description:
  - One line for each node and one for the cluster, with the checks that failed or could not be decided below it.
positional: accept_unknown
options:
  _input:
    description: What P(allreduce.gpu._verification#filter) returned.
    type: dict
    required: true
  accept_unknown:
    description: Whether checks that could not be decided are left out of C(verdict).
    type: bool
    default: false
"""

EXAMPLES = """
- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ (cluster_verification | allreduce.gpu._verification_summary).lines }}"
"""

RETURN = """
_value:
  description: C(lines) to show, and C(verdict), a sentence that names the checks that did not pass and is empty without any.
  type: dict
"""

from ..plugin_utils.checks.document import summary  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_verification_summary": summary}
