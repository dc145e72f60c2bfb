# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that users and other projects rely on. One that goes or comes is a decision: change the lists on purpose."""

import re
from pathlib import Path

import pytest
import yaml

from tools.supported import with_used

ROOT = Path(__file__).resolve().parents[2]

PLUGINS = {
    "modules": {
        "cluster_plan", "conda_env", "config_files", "controller_files", "dkms", "download", "environment_archive", "environment_switch", "fapolicyd",
        "firewall", "firewall_facts", "gpu_facts", "gpu_health", "gpu_settings", "kernel_module_archive", "munge_key", "nccl_facts",
        "network_bandwidth", "node_probe", "node_state", "package_hold", "packages", "pcie_facts", "preflight", "qos", "qos_facts",
        "rdma", "rdma_facts", "read_file", "report", "resolve_stack", "scratch", "scratch_facts", "service", "show", "slurm_accounting", "slurm_facts",
        "ssh_keys", "stage", "subject",
        "subject_facts", "torchrun",
        "training_unit",
        "tuning", "tuning_facts",
    },
    "callback": {"progress"},
    "filter": {
        "expected_bus_bandwidth", "mpi_hostfile", "mpi_rankfile", "nccl_environment", "nccl_topology_xml", "nearest_nics",
        "nvlink_islands", "rank_binding", "recorded_node", "sbom",
    },
    "lookup": {"node_program", "pynvml"},
}  # fmt: skip
ROLES = {
    "base", "benchmark", "cluster_ssh", "container_toolkit", "cuda_repository", "cuda_toolkit", "cudnn", "fabric_manager", "firewall",
    "frameworks", "gpu_local_fact",
    "gpu_settings", "health", "horovod", "monitoring", "nccl", "nvidia_driver", "pcie", "python_env", "qos",
    "rdma", "report", "scratch", "slurm", "stack", "stage", "train", "tuning", "verify",
}  # fmt: skip
PLAYBOOKS = {"benchmark", "lock", "plan", "preflight", "report", "site", "stage", "train", "verify"}
VARIABLES = {
    "stack": {
        "gpu_stack_request", "gpu_stack_profile", "gpu_stack_host", "stack_lock", "stack_lock_renew", "stack_read_index", "stack_sbom", "stack_pylock",
        "gpu_package_lock_timeout",
    },
    "train": {"train_script", "train_nodes", "train_args", "train_env"},
    "report": {"report_directory"},
}  # fmt: skip
IMPORT = "ansible.builtin.import_role"
PLAYS = yaml.safe_load((ROOT / "playbooks" / "site.yml").read_text(encoding="utf-8"))
SITE = [task for play in PLAYS for task in play.get("tasks", []) if IMPORT in task]


@pytest.mark.parametrize("kind", PLUGINS)
def test_public_plugins(kind):
    """Those that begin with an underscore are for the roles of this collection alone."""
    found = {path.stem for path in (ROOT / "plugins" / kind).glob("[!_]*.py")}
    assert found == PLUGINS[kind], f"PLUGINS[{kind!r}] of this file names others"


def test_roles_and_playbooks():
    assert {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()} == ROLES, (
        "ROLES of this file names others"
    )
    assert {path.stem for path in (ROOT / "playbooks").glob("*.yml")} == PLAYBOOKS


def test_every_role_is_played():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "playbooks").glob("*.yml")]
    named = {name for text in texts for name in re.findall(r"allreduce\.gpu\.(\w+)", text)} & ROLES
    strays = sorted(ROLES - with_used(ROOT, named))
    assert not strays, "no playbook runs these roles: name them in playbooks/site.yml"


@pytest.mark.parametrize("task", SITE, ids=lambda one: one["name"])
def test_a_role_of_site_has_its_tag(task):
    """Preflight has judged the arguments of all roles: validating them again costs each node a task."""
    name = task[IMPORT]["name"].removeprefix("allreduce.gpu.")
    assert task.get("tags") == [name], f"tags: [{name}]"
    assert task[IMPORT].get("rolespec_validate") is False, "rolespec_validate: false"


def test_every_role_is_in_the_notes():
    places = [*(ROOT / "changelogs" / "fragments").glob("*.yml"), ROOT / "changelogs" / "changelog.yaml"]
    notes = "".join(path.read_text(encoding="utf-8") for path in places)
    strays = sorted(role for role in ROLES if not re.search(rf"\brole {role}\b", notes))
    assert not strays, "no fragment in changelogs/fragments says 'role NAME - …'"


@pytest.mark.parametrize("role", VARIABLES)
def test_variables(role):
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    points = yaml.safe_load(text)["argument_specs"].values()
    assert {option for point in points for option in point.get("options") or {}} >= VARIABLES[role]


def test_facts():
    source = (ROOT / "plugins" / "modules" / "gpu_facts.py").read_text(encoding="utf-8")
    documented = yaml.safe_load(source.split('RETURN = r"""')[1].split('"""')[0])
    assert "gpu_node" in documented["ansible_facts"]["contains"]
    # Only where the option publish asks for it, so that it is not a documented return value.
    assert '"ansible_facts"] = {"gpu_stack":' in (ROOT / "plugins" / "action" / "resolve_stack.py").read_text("utf-8")
