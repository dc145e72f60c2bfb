# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments of conda on two bare hosts: rattler from the package index, a real Python from a channel in conda's own layout, a
metapackage that decides between releases, real wheels beside them, trained in, changed, taken back.
"""

import json
import re

import pytest
from cluster import KEEP, Cluster

from tests.lab import interpreters, paths, services, wheels
from tests.support.conda_channel import Package, build_channel

pytestmark = pytest.mark.lab

ROLES = ("--tags", "base,python_env,frameworks,cluster_ssh")
CHANNEL = "channel"
NAME = "ai_img_proc"  # as users of one of the reference systems call it
PREFIX = f"/opt/allreduce/envs/{NAME}"
RATTLER = "/opt/allreduce/conda/rattler"
PACKAGES = [
    Package("jpeg", "3.0.0", "h2_1", (), {"lib/libjpeg.so.9": "jpeg 3.0\n"}),
    # As in the channel pytorch: no files of its own, and what it constrains is of another package.
    Package("pytorch-cuda", "12.4", "0", ("cuda-libs",), constrains=("cuda-libs 12.4.*",)),
    Package("cuda-libs", "12.4.1", "0", ("__glibc >=2.28",), {"lib/libcublas.so": "12.4\n"}),
    Package("cuda-libs", "12.6.0", "0", ("__glibc >=2.28",), {"lib/libcublas.so": "12.6\n"}),
    Package("tiny", "1.0", "py_0", ("python",), {"site-packages/tiny.py": "ANSWER = 42\n"}, subdir="noarch", noarch="python"),
]  # fmt: skip
ASKED = ["jpeg", "pytorch-cuda=12.4", "tiny"]
ADDS = "import torch; print(int(torch.arange(4).sum()), torch.__version__)"


def python():
    """The lab's Python as a package of conda, whose pip is another package."""
    every = interpreters.files("3.11")
    found = {path: one for path, one in every.items() if "/site-packages/" not in path}
    version = interpreters.ensure("3.11").full
    links = {path: content for path, (content, _mode) in found.items() if isinstance(content, str)}
    files = {path: content for path, (content, _mode) in found.items() if isinstance(content, bytes)}
    programs = tuple(path for path, (_content, mode) in found.items() if path in files and mode & 0o100)
    return Package("python", version, "lab_0", (), files, links, programs)


class Hosts(Cluster):
    """Two bare hosts, and a channel; ALLREDUCE_KEEP=1 leaves them, and takes them again."""

    def __init__(self):
        wheels.ensure("conda")
        build_channel(paths.WHEELS / CHANNEL, [python(), *PACKAGES])
        super().__init__("conda", 2)

    def site(self, **variables):
        """Run site with conda; {host: number of changes}."""
        wanted = {
            "stack_lock": "",
            "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu", "python": "3.11", "environment_name": NAME},
            "python_env_manager": "conda", "python_env_conda_packages": ASKED,
            "python_env_conda_channels": [services.wheels_url(CHANNEL).rstrip("/")],
            "verify_collectives": False, "verify_network": False, **variables,
        }  # fmt: skip
        playbook = wanted.pop("playbook", "site")
        roles = ROLES if playbook == "site" else ()
        return self.play(f"playbooks/{playbook}.yml", *roles, "-e", json.dumps(wanted))

    def changes(self, **variables):
        run = self.site(**variables)
        assert run.status == 0, run.output[-6000:]
        return {host: run.recap[host]["changed"] for host in self.hosts}

    def checks(self, host):
        """{name: status} of playbook verify."""
        self.site(playbook="verify")
        document = json.loads((self.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
        return {one["name"]: one["status"] for one in document["nodes"][host]["checks"]}


@pytest.fixture(scope="module")
def hosts():
    made = Hosts()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def installed(hosts):
    hosts.first = hosts.site()
    assert hosts.first.status == 0, hosts.first.output[-6000:]
    return hosts


def solving(output):
    """The hosts that solved, of a run's output."""
    said = re.search(rf"(?s)TASK \[[^]]* : Solve environment {NAME}\].*?\n(.*?)(?=\nTASK |\Z)", output)
    return re.findall(r"(?m)^(?:ok|changed): \[(\S+)\]", said[1]) if said else []


def test_05_what_has_no_solution_is_told_in_a_sentence(hosts):
    run = hosts.site(python_env_conda_packages=[*ASKED, "cuda-libs=12.6"])
    assert run.status == 2, run.output[-6000:]
    assert "the channels have no solution: " in run.words and "cuda-libs" in run.words, run.output[-6000:]
    for host in hosts.hosts:
        assert hosts.on(host, "ls -A /opt/allreduce/envs 2>/dev/null || true") == ""


def test_10_solved_once_the_same_on_both(installed):
    assert len(solving(installed.first.output)) == 1, installed.first.output[-6000:]
    locks = {installed.on(host, f"cat /etc/allreduce/locks/{NAME}.conda.txt") for host in installed.hosts}
    assert len(locks) == 1
    lock = locks.pop()
    assert "/cuda-libs-12.4.1-0.conda#sha256:" in lock and "cuda-libs-12.6" not in lock
    assert "/noarch/tiny-1.0-py_0.conda#sha256:" in lock


def test_15_the_second_got_it_from_the_first(installed):
    assert "comes from the package index" not in installed.first.output


def test_20_it_is_condas_python_and_computes(installed):
    version = interpreters.ensure("3.11").full
    for host in installed.hosts:
        assert installed.on(host, f"{PREFIX}/bin/python --version").split()[1] == version
        assert installed.on(host, f"cd /tmp && {PREFIX}/bin/python -c '{ADDS}'").split()[0] == "6"
        assert installed.on(host, f"cd /tmp && {PREFIX}/bin/python -c 'import tiny; print(tiny.ANSWER)'") == "42\n"
        assert installed.on(host, f"cat {PREFIX}/lib/libjpeg.so.9 {PREFIX}/lib/libcublas.so") == "jpeg 3.0\n12.4\n"
        assert installed.on(host, f"ls {PREFIX}/conda-meta/history").strip()


def test_25_rattler_belongs_to_root_and_leaves_nothing_elsewhere(installed):
    for host in installed.hosts:
        assert installed.on(host, f"{RATTLER}/bin/rattler --version") == "rattler 0.25.0\n"
        assert installed.on(host, f"find {RATTLER} ! -user root -o -perm /022 ! -type l") == ""
        assert (
            installed.on(
                host, "find / -xdev -path '*rattler*' -not -path '/opt/allreduce/conda/*' -not -path '/proc/*'"
            )
            == ""
        )


def test_30_a_second_run_changes_nothing_and_solves_nothing(installed):
    run = installed.site()
    assert {run.recap[host]["changed"] for host in installed.hosts} == {0} and run.status == 0, run.output[-6000:]
    assert solving(run.output) == [] and "Install rattler" not in run.output


def test_40_both_train_in_it(installed):
    run = installed.site(playbook="train", train_launcher="torchrun")
    assert run.status == 0, run.output[-6000:]


def test_50_a_file_changed_by_hand_is_mended(installed):
    host = installed.hosts[1]
    installed.on(host, f"echo changed > {PREFIX}/lib/libjpeg.so.9")
    changes = installed.changes()
    assert changes[host] and not changes[installed.hosts[0]]
    assert installed.on(host, f"cat {PREFIX}/lib/libjpeg.so.9") == "jpeg 3.0\n"
    assert installed.on(host, f"cd /tmp && {PREFIX}/bin/python -c '{ADDS}'").split()[0] == "6"
    checks = installed.checks(host)
    assert checks[f"{NAME}_torch"] == "passed"
    assert "failed" not in checks.values(), checks


def test_60_back_to_uv_and_nothing_of_conda_is_left_in_it(installed):
    assert all(installed.changes(python_env_manager="uv").values())
    for host in installed.hosts:
        assert installed.on(host, f"cd /tmp && {PREFIX}/bin/python -c '{ADDS}'").split()[0] == "6"
        assert installed.on(host, f"ls -d {PREFIX}/conda-meta {RATTLER} 2>/dev/null || true") == ""
    assert set(installed.changes(python_env_manager="uv").values()) == {0}
