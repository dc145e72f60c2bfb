# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments of conda on two hosts: a real Python from a real channel, real wheels beside it, trained in, changed, taken back.

Solver and installer are rattler's; the program that calls them stands in micromamba's place (tests/support/conda_program.py): no
micromamba ran.
"""

import json

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import interpreters, paths, services, wheels
from tests.support.conda_channel import Package, build_channel

pytestmark = pytest.mark.lab

ROLES = ("--tags", "base,python_env,frameworks,cluster_ssh")
CHANNEL = "channel"
NAME = "ai_img_proc"  # as users of one of the reference systems call it
PREFIX = f"/opt/allreduce/envs/{NAME}"
STANDIN = CHECKOUT / "tests" / "support" / "conda_program.py"
PROGRAM = "/opt/standin/bin/micromamba"
CALLS = "/var/log/micromamba.calls"
INSTALL = f"""
set -e
apt-get -qq update && apt-get -qq -y install python3-venv >/dev/null
python3 -m venv /opt/standin
/opt/standin/bin/pip install -q --no-index --find-links {{wheels}} --trusted-host {{host}} py-rattler
cat > {PROGRAM} <<'END'
#!/bin/sh
[ "$1" != --version ] || {{{{ echo 2.8.1; exit; }}}}
echo "$*" >> {CALLS}
exec /opt/standin/bin/python /opt/standin/standin.py "$@"
END
chmod 755 {PROGRAM}
cat > /opt/standin/standin.py <<'END'
{{standin}}
END
"""
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
    """Two hosts that have the program; ALLREDUCE_KEEP=1 leaves them, and takes them again."""

    def __init__(self):
        wheels.ensure("conda")
        place = paths.WHEELS / CHANNEL
        build_channel(place, [python(), Package("jpeg", "3.0.0", "h2_1", (), {"lib/libjpeg.so.9": "jpeg 3.0\n"})])
        super().__init__("conda", 2)
        url = services.wheels_url("cpu")
        words = {"wheels": url, "host": url.split("/")[2].split(":")[0], "standin": STANDIN.read_text(encoding="utf-8")}
        for host in self.hosts:
            self.on(host, INSTALL.format(**words))

    def site(self, **variables):
        """Run site with conda; {host: number of changes}."""
        wanted = {
            "stack_lock": "",
            "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu", "python": "3.11", "environment_name": NAME},
            "python_env_manager": "conda", "python_env_conda_program": PROGRAM,
            "python_env_conda_channels": [services.wheels_url(CHANNEL).rstrip("/")], "python_env_conda_packages": ["jpeg"],
            "verify_collectives": False, "verify_network": False, **variables,
        }  # fmt: skip
        playbook = wanted.pop("playbook", "site")
        roles = ROLES if playbook == "site" else ()
        return self.play(f"playbooks/{playbook}.yml", *roles, "-e", json.dumps(wanted))

    def changes(self, **variables):
        run = self.site(**variables)
        assert run.status == 0, run.output[-6000:]
        return {host: run.recap[host]["changed"] for host in self.hosts}

    def calls(self):
        """What the program was asked since the last look, on each host."""
        return {host: self.on(host, f"cat {CALLS} 2>/dev/null; rm -f {CALLS}").splitlines() for host in self.hosts}

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


def test_10_solved_once_the_same_on_both(installed):
    calls = installed.calls()
    assert sum("--dry-run" in line for lines in calls.values() for line in lines) == 1, calls
    assert all(any("--dry-run" not in line for line in lines) for lines in calls.values()), calls
    locks = {installed.on(host, f"cat /etc/allreduce/locks/{NAME}.conda.txt") for host in installed.hosts}
    assert len(locks) == 1 and "#sha256:" in locks.pop()


def test_15_the_second_got_it_from_the_first(installed):
    assert "comes from the package index" not in installed.first.output


def test_20_it_is_condas_python_and_computes(installed):
    version = interpreters.ensure("3.11").full
    for host in installed.hosts:
        assert installed.on(host, f"{PREFIX}/bin/python --version").split()[1] == version
        assert installed.on(host, f"cd /tmp && {PREFIX}/bin/python -c '{ADDS}'").split()[0] == "6"
        assert installed.on(host, f"cat {PREFIX}/lib/libjpeg.so.9") == "jpeg 3.0\n"
        assert installed.on(host, f"ls {PREFIX}/conda-meta/history").strip()


def test_30_a_second_run_changes_nothing_and_asks_nothing(installed):
    installed.calls()
    assert set(installed.changes().values()) == {0}
    assert set(map(tuple, installed.calls().values())) == {()}


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
        assert installed.on(host, f"ls {PREFIX}/conda-meta 2>/dev/null || true") == ""
    assert set(installed.changes(python_env_manager="uv").values()) == {0}
