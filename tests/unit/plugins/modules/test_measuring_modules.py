# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that measure, run as programs on a recorded machine: the same answer with and without check mode."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Directory of a recorded DGX A100 whose third GPU waits for a row to be remapped."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    root = tmp_path_factory.mktemp("dgx")
    recording.build_library(root / "libnvidia-ml.so.1")
    recording.record(machines.dgx_a100().change(2, settings=(("remapped_rows", "0 1 1 0"),)), root)
    return root


def run(name: str, place: Path, check: bool = False, **options) -> dict:
    arguments = place / "arguments.json"
    arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **options}}))
    paths = [str(COLLECTIONS), *sys.path]
    environment = {
        **os.environ,
        "SIMULATED_NVML": str(place / "profile"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [sys.executable, "-m", f"ansible_collections.allreduce.gpu.plugins.modules.{name}", str(arguments)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def doors(root: Path) -> dict:
    return {
        "sysfs_root": str(root / "sys"),
        "procfs_root": str(root / "proc"),
        "nvml_library": str(root / "libnvidia-ml.so.1"),
    }


@pytest.mark.parametrize("check", [False, True])
def test_gpu_facts(machine, check):
    answer = run("gpu_facts", machine, check, **doors(machine))
    assert answer["changed"] is False
    assert [gpu["index"] for gpu in answer["ansible_facts"]["gpu_node"]["gpus"]] == list(range(8))


def test_gpu_facts_takes_what_setup_passes_on(machine):
    assert (
        run("gpu_facts", machine, gather_subset=["all"], gather_timeout=10, filter=[], **doors(machine))["changed"]
        is False
    )


@pytest.mark.parametrize("check", [False, True])
def test_gpu_health(machine, check):
    (machine / "kmsg").write_text("3,0,2,-;NVRM: Xid (PCI:0000:14:00): 63, row remapper\n")
    where = {"kernel_log": str(machine / "kmsg"), "root": str(machine / "root"), **doors(machine)}
    answer = run("gpu_health", machine, check, gpu_count=8, **where)
    assert answer["changed"] is False
    assert ("row_remapping", "GPU2", "reboot_required") in [
        (f["check"], f["gpu"], f["severity"]) for f in answer["findings"]
    ]
    assert ("xid", "GPU0", "degraded") in [(f["check"], f["gpu"], f["severity"]) for f in answer["findings"]]


@pytest.mark.parametrize("check", [False, True])
def test_node_state_of_another_root_runs_no_program(machine, tmp_path, check):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    state = run("node_state", machine, check, root=str(tmp_path), services=["chrony"])["ansible_facts"][
        "gpu_node_state"
    ]
    assert state["package_manager"] == "apt"
    assert state["services"] == {"chrony": {"enabled": None, "active": None, "outdated": None}}


def test_node_state_with_the_gpus_has_the_fact_of_gpu_facts(machine):
    alone = run("gpu_facts", machine, **doors(machine))["ansible_facts"]
    both = run("node_state", machine, root=str(machine), gpus=True)["ansible_facts"]
    assert set(both) == {"gpu_node", "gpu_node_state"}
    assert both["gpu_node"] == alone["gpu_node"]
    assert set(run("node_state", machine, root=str(machine))["ansible_facts"]) == {"gpu_node_state"}


@pytest.mark.parametrize("check", [False, True])
def test_node_probe(machine, check):
    answer = run(
        "node_probe", machine, check, nvidia_smi=False, user="no-such-user-here", peers={"localhost": "127.0.0.1"}
    )
    assert answer["changed"] is False
    assert answer["node_probe"]["nvidia_smi"] is None
    assert answer["node_probe"]["peers"]["localhost"]["reason"] == "there is no user no-such-user-here on this node"
