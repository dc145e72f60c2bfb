# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where role python_env cannot create environments, it says so before it asks the node for anything."""

import re

import pytest

from tests.support.local_play import run_roles

ENVIRONMENT = {"name": "main", "python": "3.9", "accelerator": "cpu", "requirements": ["torch==2.8.0"], "index": None}


def facts(environments):
    """An Enterprise Linux host that is planned to have ENVIRONMENTS."""
    system = {"id": "rocky", "version": "9", "family": "el", "arch": "x86_64"}
    return {
        "gpu_stack": {"os": system, "gpus": [], "environments": environments},
        "gpu_node": {"gpus": []},
        "gpu_node_state": {"package_manager": "dnf"},
    }


@pytest.mark.parametrize("role", ["python_env", "frameworks"])
def test_an_unknown_system_is_refused_with_one_sentence(role, tmp_path):
    run = run_roles(tmp_path, [role], facts([ENVIRONMENT]))
    assert run.status == 2, run.output
    said = re.sub(r"\s+", " ", run.output)
    assert (
        "Role python_env does not know the operating system rocky 9: set pytorch to none in the gpu_stack_request of node,"
        " and name no other framework there, to install driver and libraries only."
    ) in said
    assert "Could not find" not in said
    assert run.executions == []
