# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role cudnn on this machine in check mode: what becomes of an archive that is not declared any more."""

import pytest

from tests.support.local_play import run_roles

LINKER = "/etc/ld.so.conf.d/allreduce-cudnn.conf"


@pytest.mark.parametrize(
    ("there", "asked"), [("file 0644 root:root 0", ["file", "config_files"]), ("absent", []), (None, [])]
)
def test_an_archive_goes_with_its_declaration(tmp_path, there, asked):
    """The linker would go on finding it, before the packages of the plan."""
    state = {"package_manager": "apt", "packages": {}, "files": {LINKER: there} if there else {}}
    facts = {"gpu_stack": {"cudnn": None}, "gpu_node": {"gpus": []}, "gpu_node_state": state}
    run = run_roles(tmp_path, ["cudnn"], facts, "--check")
    assert run.status == 0, run.output
    assert [row["module"].rpartition(".")[2] for row in run.executions if row["role"]] == asked
