# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: where the controller has the NVML binding."""

from __future__ import annotations

DOCUMENTATION = """
name: pynvml
short_description: Find the controller's NVML binding
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Returns the path of C(pynvml.py), the single file of the Python package C(nvidia-ml-py), in the Python that runs Ansible.
  - Role P(allreduce.gpu.base#role) copies this file to the nodes, so that they need neither pip nor a package index for it.
options:
  _terms:
    description: None; the lookup takes no terms.
    required: false
"""

EXAMPLES = """
- name: Put the binding on a node
  ansible.builtin.copy:
    src: "{{ lookup('allreduce.gpu.pynvml') }}"
    dest: /opt/allreduce/lib/pynvml.py
    mode: "0644"
"""

RETURN = """
_raw:
  description: One path on the controller.
  type: list
  elements: path
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from importlib.util import find_spec
from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase


def pynvml_file(find=find_spec) -> Path:
    """Return the path of the one-file binding.

    Raise AnsibleLookupError where the controller has none, or another package's.
    """
    spec = find("pynvml")
    if spec is None or not spec.origin:
        raise AnsibleLookupError(
            "The controller's Python has no module pynvml: run `python3 -m pip install nvidia-ml-py` in the Python that runs Ansible."
        )
    path = Path(spec.origin)
    if path.name != "pynvml.py":
        raise AnsibleLookupError(
            f"The controller's module pynvml is {path}, an old package of that name: "
            "run `python3 -m pip uninstall pynvml` and `python3 -m pip install nvidia-ml-py`."
        )
    return path


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        return [str(pynvml_file())]
