# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment with JAX and with packages beside the frameworks, from real wheels: installed, imported, compared, taken back."""

import json

import pytest
from cluster import KEEP, Cluster

from tests.lab import wheels

pytestmark = pytest.mark.lab

ROLES = ("--tags", "base,python_env,frameworks,cluster_ssh")
REQUEST = {"jax": "latest", "python": "3.11"}
PACKAGES = ["catboost", "mpi4py>=4.1"]
PYTHON = "/opt/allreduce/envs/main/bin/python"
COMPUTES = "import jax; print(jax.devices()[0].platform, jax.numpy.arange(4).sum())"
BOOSTS = (
    "from catboost import CatBoostRegressor as R;"
    "print(len(R(iterations=2, verbose=0, allow_writing_files=False).fit([[0], [1]], [0, 1]).predict([[1]])))"
)


class Host(Cluster):
    """A host with the environment; ALLREDUCE_KEEP=1 leaves it, and takes it again."""

    def __init__(self):
        wheels.ensure("packages")
        super().__init__("packages", 1)
        self.host = self.hosts[0]

    def site(self, packages):
        return self.play("playbooks/site.yml", *ROLES, "-e", json.dumps(self.wanted(packages)))

    @staticmethod
    def wanted(packages):
        return {"stack_lock": "", "gpu_stack_request": REQUEST, "python_env_packages": packages}

    def checks(self):
        """{name: check} of playbook verify."""
        more = {**self.wanted(PACKAGES), "verify_collectives": False, "verify_network": False}
        self.play("playbooks/verify.yml", "-e", json.dumps(more))
        document = json.loads((self.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
        return {one["name"]: one for one in document["nodes"][self.host]["checks"]}


@pytest.fixture(scope="module")
def host():
    made = Host()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def installed(host):
    run = host.site(PACKAGES)
    assert run.status == 0, run.output[-6000:]
    return host


def test_a_second_run_changes_nothing(installed):
    run = installed.site(PACKAGES)
    assert run.status == 0, run.output[-6000:]
    assert run.recap[installed.host]["changed"] == 0


@pytest.mark.parametrize(("program", "said"), [(COMPUTES, "cpu 6"), (BOOSTS, "1")], ids=["jax", "catboost"])
def test_it_computes(installed, program, said):
    assert installed.on(installed.host, f"cd /tmp && {PYTHON} -c '{program}'").split("\n")[-2] == said


def test_verify_imports_and_compares_all_of_them(installed):
    lacking = installed.checks()
    assert lacking["main_jax"]["status"] == "passed"
    assert lacking["main_catboost"]["status"] == "passed"
    assert lacking["main_mpi4py"]["status"] == "failed", "there is no MPI yet"

    installed.on(installed.host, "apt-get -qq -y install openmpi-bin")
    checks = installed.checks()
    assert {name: checks[name]["status"] for name in ("main_mpi4py", "main_mpi")} == dict.fromkeys(
        ("main_mpi4py", "main_mpi"), "passed"
    )
    assert "Open MPI" in checks["main_mpi"]["measured"]


def test_what_is_asked_for_no_more_goes(installed):
    run = installed.site([])
    assert run.status == 0, run.output[-6000:]
    there = installed.on(installed.host, f"cd /tmp && {PYTHON} -c 'import catboost' 2>&1 || true")
    assert "No module named" in there
