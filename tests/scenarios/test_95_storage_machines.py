# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A share that one machine exports and another one mounts with NFS: verify judges it as declared, also when its server is gone."""

import json
import time

import pytest
from cluster import KEEP
from machine_hosts import Machines

pytestmark = pytest.mark.lab

SERVE = """
export DEBIAN_FRONTEND=noninteractive
which exportfs > /dev/null || { apt-get update -qq; apt-get install -qq -y nfs-kernel-server; } > /dev/null
mkdir -p /srv/data && chmod 777 /srv/data
echo '/srv/data *(rw,root_squash,no_subtree_check)' > /etc/exports
exportfs -ra
systemctl start nfs-server
"""
MOUNT = "mkdir -p /data; mountpoint -q /data || mount -t nfs4 -o hard,timeo=30,retrans=1,actimeo=1 {address}:/srv/data /data"
SHARE = {"path": "/data", "type": "nfs4", "min_free_gb": 0.1}
# An answer of the playbook with one share that hangs: five seconds more than without, and emulation.
PATIENCE = 300


class Storage(Machines):
    """The server of the share, and the node, which alone is verified."""

    @property
    def node(self):
        return self.hosts[1]

    def set_up(self):
        self.on(self.hosts[0], SERVE)
        self.on(self.node, MOUNT.format(address=self.machine(self.hosts[0]).address))
        run = self.play("tests/scenarios/network.yml", "--limit", self.node)
        assert run.status == 0, run.output[-6000:]

    def judged(self, place, *declared):
        """{path: (status, measured)} of the declared mounts, as verify judges them."""
        began = time.monotonic()
        found = self.checked(self.node, place, verify_storage_mounts=declared)
        assert time.monotonic() - began < PATIENCE
        start = "storage_mount "
        return {name.removeprefix(start): one for name, one in found.items() if name.startswith(start)}


@pytest.fixture(scope="module")
def storage():
    made = Storage("storage", 2)
    made.set_up()
    yield made
    if not KEEP:
        made.thaw(made.hosts[0])
        made.down()


def test_10_a_share_as_declared(storage, tmp_path):
    found = storage.judged(tmp_path, SHARE, {"path": "/nothing"}, {"path": "/", "type": "xfs", "writable": False})
    server = storage.machine(storage.hosts[0]).address
    assert found["/data"][0] == "passed" and found["/data"][1].startswith(f"nfs4 of {server}:/srv/data"), found
    assert found["/nothing"] == ("failed", "nothing is mounted there")
    assert found["/"][0] == "failed" and found["/"][1].startswith("ext4 of "), found


def test_20_one_that_is_read_only(storage, tmp_path):
    storage.on(storage.hosts[0], "chmod 755 /srv/data")
    storage.on(storage.node, "sleep 5")  # what NFS remembers of permissions (actimeo)
    assert storage.judged(tmp_path, SHARE)["/data"] == ("failed", "the training user may not write there")
    assert storage.judged(tmp_path, {**SHARE, "writable": False})["/data"][0] == "passed"
    storage.on(storage.hosts[0], "chmod 777 /srv/data")


def test_30_one_whose_server_is_gone_is_named_in_time_and_left_alone(storage, tmp_path):
    storage.freeze(storage.hosts[0])
    server = storage.machine(storage.hosts[0]).address
    expected = ("failed", f"nfs4 of {server}:/srv/data does not answer within 5 s")
    assert storage.judged(tmp_path, SHARE)["/data"] == expected
    assert storage.on(storage.node, "pgrep -fc node_probe || true").strip() in ("0", "1")  # nothing that waits is left
    storage.thaw(storage.hosts[0])
    assert storage.judged(tmp_path, SHARE)["/data"][0] == "passed"


def test_40_an_environment_on_it_is_refused_and_not_waited_for(storage, tmp_path):
    storage.on(storage.node, "mkdir -p /data/env/bin; ln -sf /usr/bin/python3 /data/env/bin/python")
    storage.freeze(storage.hosts[0])
    given = {
        "train_env": "/data/env",
        "train_user": "ansible",
        "train_nodes": [storage.node],
        "report_directory": str(tmp_path),
    }
    began = time.monotonic()
    run = storage.play("playbooks/train.yml", "-e", json.dumps(given))
    assert time.monotonic() - began < PATIENCE
    storage.thaw(storage.hosts[0])
    assert run.status == 2
    assert "/data/env/bin/python cannot be reached on this node (/data: nfs4 of " in run.words, run.output[-6000:]
