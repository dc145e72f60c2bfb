# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The full run on hosts whose fapolicyd enforces: Debian's daemon, with the rules that Enterprise Linux has by default.

Debian 12's build knows no package database, so that all of /usr is trusted by a list. The daemon marks the mounts of its own host
only, and systemd ends it after some minutes whatever it denies: a program to stop it could itself be denied.
"""

import pytest
import yaml
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

RULES = "/etc/fapolicyd/rules.d/38-allreduce.rules"
COMPILED = "/etc/fapolicyd/compiled.rules"
PYTHON = "/opt/allreduce/envs/main/bin/python"
DENIED = "Operation not permitted"
# Of the samples, what is installed on Enterprise Linux ("fapolicyd.rules.known-libs" in README-rules).
SAMPLES = (
    "10-languages 20-dracut 21-updaters 30-patterns 40-bad-elf 41-shared-obj 42-trusted-elf 70-trusted-lang 72-shell"
    " 90-deny-execute 95-allow-open"
)
# The lab's hosts lack a capability that a change to the daemon's own user needs.
INSTALL = f"""
systemctl mask -q fapolicyd 2>/dev/null
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends fapolicyd >/dev/null 2>&1
for name in {SAMPLES}; do cp /usr/share/fapolicyd/sample-rules/$name.rules /etc/fapolicyd/rules.d/; done
sed -i 's/^watch_fs.*/watch_fs = overlay,tmpfs/; s/^trust =.*/trust = file/; s/^db_max_size.*/db_max_size = 200/
  s/^uid =.*/uid = root/; s/^gid =.*/gid = root/' /etc/fapolicyd/fapolicyd.conf
mkdir -p /etc/systemd/system/fapolicyd.service.d
printf '[Service]\\nRestart=no\\nRuntimeMaxSec=1800\\nTimeoutStartSec=60\\nTimeoutStopSec=5\\n' > /etc/systemd/system/fapolicyd.service.d/lab.conf
systemctl unmask -q fapolicyd; systemctl disable -q fapolicyd; systemctl daemon-reload
"""
TRUST = (
    "rm -f /etc/fapolicyd/trust.d/system.trust; fapolicyd-cli --file add /usr/ --trust-file system.trust >/dev/null;"
    " grep -c . /etc/fapolicyd/trust.d/system.trust"
)
START = "systemctl stop fapolicyd; sed -i 's/^permissive.*/permissive = {permissive}/' /etc/fapolicyd/fapolicyd.conf; systemctl start fapolicyd"
# It denies nothing until it has read what is trusted.
LISTENS = (
    "for i in $(seq 120); do journalctl -q _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID fapolicyd)"
    " | grep -q 'Starting to listen' && exit 0; sleep 0.5; done; exit 1"
)


class Guarded:
    """Two hosts with fapolicyd, on which the full run was done before it enforced, without our rules."""

    def __init__(self):
        self.cluster = Cluster("fapolicyd", 2, "--distribution", "debian12")
        place = self.cluster.inventory / "group_vars" / "gpu_nodes.yml"
        kept = yaml.safe_load(place.read_text(encoding="utf-8"))
        # An interpreter that no package brings; the driver's packages are not what fapolicyd is about.
        request = {**kept["gpu_stack_request"], "python": "3.11"}  # that of the lab's wheels
        values = {"gpu_stack_request": request, "python_env_python": "standalone", "nvidia_driver_without_gpu": False}
        place.write_text(yaml.safe_dump({**kept, **values}), encoding="utf-8")
        self.each("systemctl stop fapolicyd 2>/dev/null || true")
        self.each(INSTALL)
        self.succeed("playbooks/site.yml", "-e", "base_fapolicyd_state=absent")
        self.each(TRUST)
        self.start(permissive=1)  # an error of ours is to deny nothing
        assert self.said(f"{PYTHON} -c 'print(6 * 7)'") == ["42", "42"]
        self.start(permissive=0)

    def start(self, permissive):
        self.each(START.format(permissive=permissive))
        self.each(LISTENS)

    def each(self, command, check=True):
        return [self.cluster.on(host, command, check) for host in self.cluster.hosts]

    def said(self, command, user="trainer"):
        """What a command of a user prints on each host."""
        return [text.strip() for text in self.each(f"cd / && runuser -u {user} -- {command} 2>&1", check=False)]

    def succeed(self, playbook, *options):
        run = self.cluster.play(playbook, *options)
        assert run.status == 0, run.output[-6000:]
        return run

    def changes(self, run):
        return [run.recap[host]["changed"] for host in self.cluster.hosts]

    def enforces(self):
        """Assert that the daemons run, and deny the training user a program that is nobody's."""
        self.each(LISTENS)
        self.each("cp /usr/bin/true /tmp/foreign && chmod 755 /tmp/foreign")
        assert all(DENIED in text for text in self.said("/tmp/foreign")), self.said("/tmp/foreign")


@pytest.fixture(scope="module")
def guarded():
    made = Guarded()
    yield made
    made.each("systemctl stop fapolicyd", check=False)
    if not KEEP:
        made.cluster.down()


def test_without_the_rules_the_environment_is_denied_and_both_playbooks_say_so(guarded):
    guarded.enforces()
    assert all(DENIED in text for text in guarded.said(f"{PYTHON} -c 'print(42)'"))
    run = guarded.cluster.play("playbooks/verify.yml")
    assert (
        run.status != 0
        and "fapolicyd keeps all but root from the programs and libraries of /opt/allreduce" in run.words
    )
    run = guarded.cluster.play("playbooks/train.yml")
    assert (
        run.status != 0
        and f"fapolicyd on this node would deny the training environment's interpreter {PYTHON}" in run.words
    )


def test_the_main_job_on_enforcing_hosts(guarded):
    guarded.each("rm -rf /opt/allreduce/envs /opt/allreduce/python /opt/allreduce/uv /opt/allreduce/cache")
    guarded.start(permissive=0)
    guarded.succeed("playbooks/site.yml")
    run = guarded.succeed("playbooks/site.yml")
    assert guarded.changes(run) == [0, 0], run.output[-6000:]
    assert guarded.said(f"{PYTHON} -c 'import torch; print(6 * 7)'") == ["42", "42"]
    guarded.succeed("playbooks/verify.yml")
    guarded.succeed("playbooks/train.yml")
    guarded.enforces()


def test_a_library_of_the_training_user_is_still_denied(guarded):
    guarded.each("cp /usr/lib/x86_64-linux-gnu/libz.so.1 /tmp/foreign.so; chmod 755 /tmp/foreign.so")
    load = f"{PYTHON} -c 'import ctypes; ctypes.CDLL(\"/tmp/foreign.so\")'"
    assert all(DENIED in text for text in guarded.said(load)), guarded.said(load)


def test_the_rules_go_again(guarded):
    guarded.start(permissive=0)
    removal = ("playbooks/site.yml", "-e", "base_fapolicyd_state=absent", "--tags", "base")
    shown = guarded.succeed(*removal, "--check", "--diff")
    assert "-allow perm=any all : dir=/opt/allreduce/" in shown.output
    guarded.succeed(*removal)
    guarded.enforces()
    assert guarded.each(f"test ! -e {RULES} && ! grep allreduce {COMPILED} && echo none") == ["none\n", "none\n"]
    assert all(DENIED in text for text in guarded.said(f"{PYTHON} -c 'print(42)'"))
    run = guarded.succeed(*removal)
    assert guarded.changes(run) == [0, 0]
