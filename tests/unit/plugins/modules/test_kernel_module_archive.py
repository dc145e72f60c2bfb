# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, on two nodes that are two directories."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import kernel_module_archive

COLLECTIONS = str(Path(kernel_module_archive.__file__).resolve().parents[2] / ".collections")
KERNEL, VERSION = "6.1.0-40-amd64", "535.261.03"
BUILT = f"var/lib/dkms/nvidia/{VERSION}/{KERNEL}/x86_64/module/nvidia.ko"
OVERRIDE = "etc/dkms/nvidia.conf"


@pytest.fixture
def nodes(tmp_path):
    """Two nodes with the driver's source; the first has built its module."""
    for name in ("one", "two"):
        for path, text in (
            (f"usr/src/nvidia-{VERSION}/nv.c", "int nv;"),
            (f"lib/modules/{KERNEL}/build/.config", "X=y"),
        ):
            (tmp_path / name / path).parent.mkdir(parents=True)
            (tmp_path / name / path).write_text(text)
        dkms = tmp_path / name / "var/lib/dkms/nvidia"
        (dkms / VERSION).mkdir(parents=True)
        (dkms / VERSION / "source").symlink_to(tmp_path / name / f"usr/src/nvidia-{VERSION}")
    (tmp_path / "one" / BUILT).parent.mkdir(parents=True)
    (tmp_path / "one" / BUILT).write_text("compiled")
    (tmp_path / "one/var/lib/dkms/nvidia" / f"kernel-{KERNEL}-x86_64").symlink_to(f"{VERSION}/{KERNEL}/x86_64")
    return tmp_path


def run(nodes, node, state, check=False, **options):
    said = {
        "name": "nvidia",
        "kernels": [KERNEL],
        "state": state,
        "path": f"{nodes}/archives/x.tar.gz",
        "root": f"{nodes}/{node}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.kernel_module_archive",
         json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **said, **options}})],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_module_goes_from_one_node_to_another(nodes):
    assert run(nodes, "two", "awaited")["changed"]
    assert (nodes / "two" / OVERRIDE).exists()
    assert run(nodes, "one", "packed")["changed"]
    assert run(nodes, "two", "unpacked")["kernels"] == [KERNEL]
    assert (nodes / "two" / BUILT).read_text() == "compiled"
    assert not (nodes / "two" / OVERRIDE).exists()
    assert run(nodes, "two", "absent")["changed"]
    assert not run(nodes, "two", "absent")["changed"]
    assert list((nodes / "archives").iterdir()) == []


def test_where_it_fails_the_node_waits_no_longer(nodes):
    run(nodes, "two", "awaited")
    (nodes / "two" / f"usr/src/nvidia-{VERSION}/nv.c").write_text("int other;")
    run(nodes, "one", "packed")
    failed = run(nodes, "two", "unpacked")
    assert (failed["failed"], failed["problem"]["code"]) == (True, "module_other_inputs")
    assert not (nodes / "two" / OVERRIDE).exists()
    assert not (nodes / "two" / BUILT).exists()


@pytest.mark.parametrize("state", ["awaited", "packed", "unpacked"])
def test_check_mode_changes_nothing(nodes, state):
    before = sorted(nodes.rglob("*"))
    assert run(nodes, "one", state, check=True)["changed"]
    assert sorted(nodes.rglob("*")) == before


def test_in_check_mode_nothing_that_is_not_there_is_removed(nodes):
    assert not run(nodes, "two", "absent", check=True)["changed"]
    run(nodes, "two", "awaited")
    assert run(nodes, "two", "absent", check=True)["changed"]
    assert (nodes / "two" / OVERRIDE).exists()


@pytest.mark.parametrize(("enforced", "fails"), [(b"\1", True), (b"\0", False)])
def test_a_kernel_that_demands_signatures_takes_those_of_its_own_key(nodes, enforced, fails):
    variables = nodes / "two/sys/firmware/efi/efivars"
    variables.mkdir(parents=True)
    (variables / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(b"\6\0\0\0" + enforced)
    for node, key in (("one", b"a key"), ("two", b"another")):
        (nodes / node / "var/lib/dkms/mok.pub").write_bytes(key)
    run(nodes, "one", "packed")
    assert run(nodes, "two", "unpacked").get("problem", {}).get("code") == ("module_other_key" if fails else None)
    (nodes / "two/var/lib/dkms/mok.pub").write_bytes(b"a key")
    assert not run(nodes, "two", "unpacked").get("failed")
