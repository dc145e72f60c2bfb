# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the bill of materials of a node."""

DOCUMENTATION = """
name: sbom
short_description: Write a bill of materials of a node
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lists the packages of a node's driver, CUDA, libraries and Python environments as CycloneDX 1.6, with their package URLs.
  - Equal nodes get equal documents, byte for byte; they carry no time.
  - The rest of the operating system is not in it, as the collection does not install it.
positional: observed, name
options:
  _input:
    description: The fact C(gpu_stack), or a stack of a plan.
    type: dict
    required: true
  observed:
    description:
      - The fact C(gpu_node_state). With it the bill has what is installed, every package of the environments with it; without
        it, what is planned. A package of which the plan leaves the version to the distribution has none then.
    type: dict
  name:
    description: What the bill is of.
    type: str
    default: node
requirements:
  - cyclonedx-python-lib on the controller
"""

EXAMPLES = """
- name: Write what is installed on each node
  ansible.builtin.copy:
    content: "{{ ansible_facts.gpu_stack | allreduce.gpu.sbom(ansible_facts.gpu_node_state, inventory_hostname) }}"
    dest: "{{ inventory_dir }}/sbom/{{ inventory_hostname }}.cdx.json"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = """
_value:
  description: Text of the document, JSON.
  type: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
import json

from ansible.errors import AnsibleFilterError

from ..plugin_utils.planning.lock import plain
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.sbom.bill import bill
from ..plugin_utils.subjects.sentences import describe_all


def sbom(stack, observed=None, name="node"):
    """Return the bill of materials as text."""
    try:
        return json.dumps(bill(plain(stack), plain(observed or {}), str(name)), indent=2) + "\n"
    except ProblemError as error:
        raise AnsibleFilterError(describe_all(error.problems)) from None


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"sbom": sbom}
