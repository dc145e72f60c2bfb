# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The built archive, installed into somebody else's project."""

import subprocess

import pytest
from cluster import environment

from tests.support.checkout import copy_checkout
from tests.support.newer_tables import NEWER, add_newer_pytorch, difference

pytestmark = pytest.mark.lab

CONFIG = """\
[defaults]
collections_path = collections
forks = 10
inject_facts_as_vars = false
[connection]
pipelining = true
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """An empty project that has the collection in collections/, from the archive."""
    root = tmp_path_factory.mktemp("project")
    config = root / "ansible.cfg"
    config.write_text(CONFIG, encoding="utf-8")
    # The build looks at every file of its directory, and the hosts' own are in the checkout.
    copy_checkout(root / "checkout")
    build = ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(root), str(root / "checkout")]
    subprocess.run(build, check=True, env=environment(config), cwd=root)
    archive = next(root.glob("allreduce-gpu-*.tar.gz"))
    install = ["ansible-galaxy", "collection", "install", "--offline", "-p", "collections", str(archive)]
    subprocess.run(install, check=True, env=environment(config), cwd=root)
    return root


def play(cluster, project, playbook, *options):
    """ansible-playbook from within the project."""
    return cluster.play(playbook, *options, cwd=project, config=project / "ansible.cfg")


def test_site_by_its_collection_name(cluster, project):
    run = play(cluster, project, "allreduce.gpu.site", "--check", "--diff")
    assert run.status == 0, run.output[-6000:]
    assert set(cluster.hosts) <= set(run.recap)
    assert all(counts["failed"] == 0 for counts in run.recap.values())
    assert all(counts["changed"] == 0 for counts in run.recap.values()), "the checkout's run had converged these hosts"


def test_one_role_in_somebody_elses_play(cluster, project):
    (project / "theirs.yml").write_text(
        "---\n- hosts: gpu_nodes\n  become: true\n  roles:\n    - allreduce.gpu.cluster_ssh\n", encoding="utf-8"
    )
    run = play(cluster, project, "theirs.yml")
    assert run.status == 0, run.output[-6000:]
    assert all(run.recap[host]["changed"] == 0 for host in cluster.hosts), run.output[-6000:]


@pytest.mark.parametrize("package", ["environment-modules", "lmod"])
def test_modulefiles_of_the_environments(cluster, project, package):
    """Both programs that have a command module read them, as a login shell does."""
    host, asked = cluster.hosts[0], ("--tags", "python_env", "-e", '{"python_env_modulefiles": true}')
    run = play(cluster, project, "allreduce.gpu.site", *asked)
    assert run.status == 0, run.output[-6000:]
    again = play(cluster, project, "allreduce.gpu.site", *asked)
    assert all(again.recap[one]["changed"] == 0 for one in cluster.hosts), again.output[-6000:]
    cluster.on(
        host, f"DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends {package} >/dev/null"
    )
    try:
        shell = "bash --login -c 'module load allreduce/main && python -c \"import sys; print(sys.prefix)\"; %s'"
        assert cluster.on(host, shell % "true").strip() == "/opt/allreduce/envs/main"
        gone = cluster.on(host, shell % "module unload allreduce/main; echo ${VIRTUAL_ENV:-none} $PATH").splitlines()[
            -1
        ]
        assert gone.startswith("none ") and "/opt/allreduce/envs" not in gone
    finally:
        cluster.on(host, f"apt-get purge -y -qq {package} >/dev/null")
        cluster.on(host, "rm -r /opt/allreduce/modulefiles /etc/profile.d/zz-allreduce-modules.sh")


def test_training_by_its_collection_name(cluster, project):
    run = play(cluster, project, "allreduce.gpu.train", "-e", "train_nodes=1", "--check")
    assert run.status == 0, run.output[-6000:]


@pytest.fixture(scope="module")
def unpinned(cluster, tmp_path_factory):
    """The inventory of the converged hosts, with a request that leaves PyTorch to the tables, and without a lock."""

    def leave_pytorch_open(content):
        for variables in content["gpu_nodes"]["hosts"].values():
            variables["gpu_stack_request"] = {
                "driver": "535", "driver_source": "distribution", "pytorch": "latest", "pytorch_index": "cpu",
            }  # fmt: skip

    inventory = cluster.edit_inventory(tmp_path_factory.mktemp("unpinned") / "inventory", leave_pytorch_open)
    (inventory / "stack.lock.yml").unlink(missing_ok=True)
    return inventory


def nothing_changed(run, cluster):
    return run.status == 0 and all(run.recap[host]["changed"] == 0 for host in cluster.hosts)


def test_newer_tables_change_nothing_while_there_is_a_lock(cluster, project, unpinned):
    config = {"cwd": project, "config": project / "ansible.cfg", "inventory": unpinned}
    first = cluster.play("allreduce.gpu.plan", **config)
    assert first.status == 0, first.output[-6000:]
    lock = (unpinned / "stack.lock.yml").read_text(encoding="utf-8")

    add_newer_pytorch(project / "collections" / "ansible_collections" / "allreduce" / "gpu")
    again = cluster.play("allreduce.gpu.site", **config)
    assert nothing_changed(again, cluster), again.output[-6000:]
    assert f"update {difference()}" in again.words
    assert (unpinned / "stack.lock.yml").read_text(encoding="utf-8") == lock


def test_renewing_the_lock_shows_the_difference_first(cluster, project, unpinned):
    config = {"cwd": project, "config": project / "ansible.cfg", "inventory": unpinned}
    shown = cluster.play("allreduce.gpu.plan", "-e", "stack_lock_renew=true", "--check", "--diff", **config)
    assert shown.status == 0, shown.output[-6000:]
    assert shown.words.index(f"update {difference()}") < shown.words.index("Record the plan in the lock")
    assert NEWER not in (unpinned / "stack.lock.yml").read_text(encoding="utf-8")
