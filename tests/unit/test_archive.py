# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive that is built from galaxy.yml holds what users need, and no more."""

import os
import subprocess
import sys
import tarfile

import pytest
from ansible_collections.allreduce.gpu.tests.support.checkout import copy_checkout, tracked

FOLDERS = ("data", "docs", "examples", "inventories", "meta", "playbooks", "plugins", "roles")
FILES = {
    "README.md", "LICENSE", "CHANGELOG.rst", "bindep.txt", "requirements.txt", "requirements-216.txt",
    "changelogs/changelog.yaml", "changelogs/config.yaml",
}  # fmt: skip
WRITTEN_BY_THE_BUILD = {"MANIFEST.json", "FILES.json"}
# What work in a checkout leaves there.
LEFTOVERS = (
    ".cache/lab/demo/hosts.yml", ".reports/report.html", ".venv/lib/site.py", "dist/allreduce-gpu-0.0.1.tar.gz",
    "inventories/cluster/stack.lock.yml", "inventories/cluster/.reports/report.json", "inventories/lab/hosts.yml",
    "inventories/lab/stack.lock.yml", "plugins/modules/__pycache__/gpu_facts.cpython-311.pyc", "plugins/modules/gpu_facts.py~",
    "tests/output/unit.xml",
)  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Names of the files in an archive built from a copy of the checkout in which somebody has worked."""
    place = tmp_path_factory.mktemp("archive")
    copy = place / "checkout"
    copy_checkout(copy)
    link = copy / ".collections" / "ansible_collections" / "allreduce" / "gpu"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../..")
    for name in LEFTOVERS:
        assert not (copy / name).exists()
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("left over\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    command = [sys.executable, "-m", "ansible", "galaxy", "collection", "build", "--output-path", str(place), str(copy)]
    subprocess.run(command, check=True, env=environment, cwd=place, capture_output=True)
    with tarfile.open(next(place.glob("allreduce-gpu-*.tar.gz"))) as opened:
        return {member.name for member in opened if not member.isdir()}


def test_the_archive_holds_what_users_need_and_no_more(archive):
    wanted = {name for name in tracked() if name.startswith(tuple(f"{one}/" for one in FOLDERS))}
    wanted = {name for name in wanted if not name.startswith("inventories/lab/")} | FILES
    assert sorted(archive - wanted) == sorted(WRITTEN_BY_THE_BUILD)
    assert sorted(wanted - archive) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_is_empty(archive, folder):
    assert any(name.startswith(f"{folder}/") for name in archive)
