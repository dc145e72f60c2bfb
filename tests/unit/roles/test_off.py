# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles whose part of the plan is empty do nothing on the host: not one module runs there."""

from pathlib import Path

import pytest

from tests.support.local_play import run_roles
from tools.supported import site_roles

# These have something to do on every host.
NEVER_OFF = {"base", "cluster_ssh"}
ROLES = [name for name in site_roles(Path(__file__).resolve().parents[3]) if name not in NEVER_OFF]
SYSTEMS = {
    "debian": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"},
    "el": {"id": "rocky", "version": "9", "family": "el", "arch": "x86_64"},
}
NOTHING = dict.fromkeys(["driver", "fabric_manager", "cuda", "cudnn", "nccl", "repository"])
MANAGERS = {"debian": "apt", "el": "dnf"}


@pytest.mark.parametrize("family", SYSTEMS)
def test_nothing_runs_on_the_host_for_what_is_off(family, tmp_path):
    run = run_roles(
        tmp_path,
        ROLES,
        {
            "gpu_stack": {"os": SYSTEMS[family], "gpus": [], "environments": [], **NOTHING},
            "gpu_node": {"gpus": []},
            "gpu_node_state": {
                "package_manager": MANAGERS[family],
                "packages": {},
                "leftover_packages": {},
                "services": {},
            },
        },
    )
    assert run.status == 0, run.output
    assert [row["role"] for row in run.executions] == [None], run.executions
