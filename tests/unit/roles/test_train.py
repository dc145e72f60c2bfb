# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role train on this machine, up to Open MPI: what it refuses before it installs anything."""

import json

import pytest

from tests.support.local_play import run_roles


def prepare(place, pkg_mgr):
    """Run the role in check mode on a host of this package manager; nothing trains here."""
    given = {"train_launcher": "mpirun", "train_install_mpi": True, "gpu_cluster_address": "127.0.0.1"}
    facts = {"ansible_facts": {"pkg_mgr": pkg_mgr}, "ansible_pkg_mgr": pkg_mgr, "gpu_node": {"gpus": []}}
    return run_roles(place, ["train"], facts, "--check", "-vv", "-e", json.dumps(given), groups=("gpu_nodes",))


@pytest.mark.parametrize("manager", ["zypper", "pacman"])
def test_a_package_manager_whose_open_mpi_is_not_known_is_refused(manager, tmp_path):
    run = prepare(tmp_path, manager)
    assert run.status != 0
    assert f"Role train does not know the Open MPI package of {manager} (node): install Open MPI there" in run.output
    assert "train_install_mpi to false." in run.output
