# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment with JAX and with packages beside the frameworks, from real wheels: installed, imported, compared, taken back.

Another request is another environment: the old one stays in use where the new one does not work, and is there for going back.
"""

import base64
import json
import re

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import podman, traffic, wheels
from tests.support.wheel import wheel

pytestmark = pytest.mark.lab

ROLES = ("--tags", "base,python_env,frameworks,cluster_ssh")
REQUEST = {"jax": "latest", "python": "3.11"}
PACKAGES = ["catboost", "mpi4py>=4.1"]
ENVIRONMENTS = "/opt/allreduce/envs"
PYTHON = f"{ENVIRONMENTS}/main/bin/python"
BROKEN = "raise ImportError('libmissing.so.1: cannot open shared object file')\n"
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

    def site(self, packages, *options, **variables):
        return self.play(
            "playbooks/site.yml", *ROLES, "-e", json.dumps({**self.wanted(packages), **variables}), *options
        )

    def in_use(self):
        """The directory to which the link leads."""
        return self.on(self.host, f"readlink {ENVIRONMENTS}/main").strip()

    def there(self):
        return set(self.on(self.host, f"ls -A {ENVIRONMENTS}").split())

    def imports(self, module):
        return "No module named" not in self.on(self.host, f"cd /tmp && {PYTHON} -c 'import {module}' 2>&1 || true")

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


def test_ranks_sum_with_the_mpi_of_the_node(installed):
    """The example, started as a training user starts it."""
    script = base64.b64encode((CHECKOUT / "examples" / "mpi_allreduce.py").read_bytes()).decode()
    installed.on(installed.host, "apt-get -qq -y install openmpi-bin")
    installed.on(installed.host, f"echo {script} | base64 -d > /home/trainer/mpi_allreduce.py")
    started = f"mpirun --oversubscribe -np 2 {PYTHON} mpi_allreduce.py --megabytes 0.001 1"
    said = installed.on(installed.host, f"runuser -l trainer -c '{started}'")
    assert re.search(r"^2 ranks on 1 node \(\S+\) with Open MPI 4", said, re.M), said
    assert re.findall(r"^ +(\d+) bytes +\S+ us +\S+ GB/s$", said, re.M) == ["1000", "1000000"], said


def test_what_is_asked_for_no_more_goes(installed):
    """Another environment is made beside the one in use, and takes its place."""
    first = installed.in_use()
    run = installed.site([], "--check", "--diff")
    assert f"-{ENVIRONMENTS}/main: {first} +{ENVIRONMENTS}/main: a new one" in run.words
    assert (installed.in_use(), installed.imports("catboost")) == (first, True)

    run = installed.site([])
    assert run.status == 0, run.output[-6000:]
    assert not installed.imports("catboost")
    assert installed.there() == {"main", first, installed.in_use()} and installed.in_use() != first
    assert installed.site([]).recap[installed.host]["changed"] == 0


def test_one_that_does_not_work_is_not_taken_into_use(installed, tmp_path):
    """A package of which the import fails, from a directory of wheels on the host."""
    before, lock = installed.in_use(), installed.on(installed.host, "cat /etc/allreduce/locks/main.txt")
    wheel(tmp_path, "torchmetrics", "99.0", BROKEN)
    (made,) = tmp_path.glob("*.whl")
    content = base64.b64encode(made.read_bytes()).decode()
    installed.on(installed.host, f"mkdir -p /srv/wheels && echo {content} | base64 -d > /srv/wheels/{made.name}")
    given = re.search(r"python_env_find_links:\n\s+- (\S+)", (installed.inventory / "hosts.yml").read_text("utf-8"))
    places = ["/srv/wheels", *([given[1]] if given else [])]
    run = installed.site(["torchmetrics==99.0"], python_env_find_links=places)
    assert run.status != 0
    assert (
        "Environment main was not replaced, as the new one does not work: torchmetrics cannot be imported: ImportError: libmissing.so.1:"
        f" cannot open shared object file; the one before it stays in use, {before}."
    ) in run.words
    assert (installed.in_use(), installed.on(installed.host, "cat /etc/allreduce/locks/main.txt")) == (before, lock)
    installed.on(installed.host, f"cd /tmp && {PYTHON} -c 'import jax'")


def test_going_back_fetches_nothing(installed):
    """The environment with the packages was kept."""
    podman.prepare()
    without = installed.in_use()
    watch = traffic.Watch(installed.host, installed.address(installed.host))
    run = installed.site(PACKAGES)
    assert run.status == 0, run.output[-6000:]
    got = watch.traffic()
    assert (got.served("wheels"), got.outside) == (0, 0), got.transfers
    assert installed.imports("catboost")
    # What did not work is gone, as is what else nobody uses but for one.
    assert installed.there() == {"main", without, installed.in_use()}
    assert installed.site(PACKAGES).recap[installed.host]["changed"] == 0


def test_verify_names_the_directory_of_a_file_that_was_changed(installed):
    installed.on(installed.host, f"echo '# mine' >> {ENVIRONMENTS}/main/lib/python3.11/site-packages/jax/version.py")
    assert (
        f"lib/python3.11/site-packages/jax/version.py in {installed.in_use()}"
        in installed.checks()["main_files"]["reason"]
    )
    before = installed.in_use()
    assert installed.site(PACKAGES).status == 0
    assert installed.in_use() == before
    assert installed.checks()["main_files"]["status"] == "passed"
