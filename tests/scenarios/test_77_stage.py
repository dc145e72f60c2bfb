# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scratch on a real loop device with a real XFS, and a data set that is copied to it: continued, verified, replaced, removed."""

import json
import shlex
import time

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

SCRATCH = "tests/scenarios/stage.yml"
STAGE = "playbooks/stage.yml"
SHARDS = 24
# Answers half a second after each question, writes down who asks for what, and cannot be asked by others.
SERVER = """
import functools, http.server, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.5)
        with open("/var/tmp/asked", "a") as kept:
            kept.write(self.client_address[0] + " " + self.path + "\\n")
        super().do_GET()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), functools.partial(Handler, directory="/var/tmp/source")).serve_forever()
"""
TREE = "find /scratch -mindepth 1 -printf '%P %y %m %u:%g %s\\n' | LC_ALL=C sort; cd /scratch && find . -type f -exec md5sum {} + | LC_ALL=C sort"


class Nodes:
    """Two hosts, each with a blank loop device; the first one serves the data set."""

    def __init__(self):
        self.cluster = Cluster("stage", 2, "--distribution", "debian12")
        self.first, self.second = self.cluster.hosts
        self.disks = {host: self.disk(host) for host in self.cluster.hosts}
        for host in self.cluster.hosts:
            self.on(host, "id trainer >/dev/null 2>&1 || useradd -m trainer")
        self.on(
            self.first,
            f"mkdir -p /var/tmp/source/train && cd /var/tmp/source && for i in $(seq {SHARDS}); do"
            " head -c 200000 /dev/urandom > train/$i.tar; done && find . -type f ! -name SHA256SUMS -exec sha256sum {} + > SHA256SUMS",
        )
        self.on(self.first, f"setsid -f python3 -c {shlex.quote(SERVER)} >/dev/null 2>&1 </dev/null")
        self.url = f"http://{self.on(self.first, 'hostname -I').split()[0]}:8080"

    def on(self, host, command, check=True):
        return self.cluster.on(host, command, check)

    def disk(self, host, name="disk"):
        """A blank disk of 512 MiB."""
        image = f"/var/tmp/{name}.img"
        return self.on(host, f"truncate -s 512M {image} && losetup -f --show {image}").strip()

    def scratch(self, *options, disks=None, **variables):
        found = "{{ " + json.dumps(disks or self.disks) + "[inventory_hostname] }}"
        given = {"scratch_state": "present", "scratch_disks": [found], "scratch_owner": "trainer", **variables}
        return self.cluster.play(SCRATCH, "-e", json.dumps(given), *options)

    def stage(self, *options, **variables):
        checksum = "sha256:" + self.on(self.first, "sha256sum < /var/tmp/source/SHA256SUMS").split()[0]
        given = {"stage_name": "set", "stage_source": self.url, "stage_checksum": checksum, **variables}
        return self.cluster.play(STAGE, "-e", json.dumps(given), *options)

    def changed(self, run):
        """Hosts that a run changed; it has to succeed."""
        assert run.status == 0, run.output[-6000:]
        return {host for host in self.cluster.hosts if run.recap.get(host, {}).get("changed")}

    def signatures(self, host, disk):
        return self.on(host, f"wipefs --noheadings --output TYPE {disk}").split()

    def asked(self):
        """Files that were asked for, a line for each time and host."""
        return sorted(self.on(self.first, "cat /var/tmp/asked 2>/dev/null; : > /var/tmp/asked").splitlines())

    def down(self):
        for host in self.cluster.hosts:
            self.on(host, "umount /scratch", check=False)
            for image in ("disk", "other"):
                self.on(host, f"losetup -j /var/tmp/{image}.img | cut -d: -f1 | xargs -r losetup -d", check=False)
        self.cluster.down()


@pytest.fixture(scope="module")
def nodes():
    made = Nodes()
    try:
        yield made
    finally:
        if not KEEP:
            made.down()


def test_a_disk_that_has_something_is_refused_and_stays_as_it_is(nodes):
    disks = {host: nodes.disk(host, "other") for host in nodes.cluster.hosts}
    for host, disk in disks.items():
        nodes.on(host, f"mkswap -q {disk} 2>/dev/null || mkswap {disk}")
    before = {host: nodes.on(host, f"md5sum {disk}") for host, disk in disks.items()}
    run = nodes.scratch(disks=disks)
    assert run.status != 0
    for host, disk in disks.items():
        assert f"{disk} is formatted as swap" in run.words
        assert nodes.on(host, f"md5sum {disk}") == before[host]
        nodes.on(host, f"losetup -d {disk} && rm /var/tmp/other.img")


def test_nothing_is_staged_before_there_is_a_scratch(nodes):
    run = nodes.stage()
    assert run.status != 0 and "set is not staged: nothing is mounted at /scratch" in run.words
    assert nodes.on(nodes.first, "ls -A /scratch 2>/dev/null || true") == ""


def test_a_blank_disk_becomes_the_scratch(nodes):
    """In check mode nothing is written; then a real XFS, by UUID in fstab; a second run changes nothing."""
    nodes.fstab = {host: nodes.on(host, "cat /etc/fstab 2>/dev/null || true") for host in nodes.cluster.hosts}
    assert nodes.changed(nodes.scratch("--check", "--diff")) == set(nodes.cluster.hosts)
    for host, disk in nodes.disks.items():
        assert nodes.signatures(host, disk) == []
    assert nodes.changed(nodes.scratch()) == set(nodes.cluster.hosts)
    for host, disk in nodes.disks.items():
        source, kind, options = nodes.on(host, "findmnt -no SOURCE,FSTYPE,OPTIONS /scratch").split()
        assert (source, kind) == (disk, "xfs") and "noatime" in options.split(",")
        assert nodes.on(host, "stat -c %U:%a /scratch").strip() == "trainer:755"
        uuid = nodes.on(host, f"blkid -p -o value -s UUID {disk}").strip()
        assert f"UUID={uuid} /scratch xfs" in " ".join(nodes.on(host, "cat /etc/fstab").split())
        nodes.on(host, "umount /scratch && mount /scratch && xfs_info /scratch")
    assert nodes.changed(nodes.scratch()) == set()
    assert nodes.changed(nodes.scratch("--check")) == set()


def test_an_interrupted_copy_is_continued_and_never_seen(nodes):
    nodes.asked()
    checksum = "sha256:" + nodes.on(nodes.first, "sha256sum < /var/tmp/source/SHA256SUMS").split()[0]
    given = {"stage_name": "set", "stage_source": nodes.url, "stage_checksum": checksum}
    process = nodes.cluster.start(STAGE, "-e", json.dumps({**given, "stage_jobs": 2}), "--limit", nodes.second)
    for _attempt in range(240):
        copied = nodes.on(nodes.second, "ls /scratch/.set.staging/train 2>/dev/null | wc -l")
        if int(copied) >= 4:
            break
        time.sleep(0.25)
    nodes.on(nodes.second, "pkill -KILL -u trainer")  # what copies does it as this user
    output = process.communicate()[0]
    assert process.returncode != 0, output
    assert nodes.on(nodes.second, "ls /scratch").split() == []
    done = set(nodes.asked())
    assert 0 < len(done) < SHARDS, done
    assert nodes.changed(nodes.stage("--limit", nodes.second)) == {nodes.second}
    again = [one for one in nodes.asked() if one in done]
    # Those that were under way begin anew, two at a time.
    assert len([one for one in again if "SHA256SUMS" not in one]) <= 2


def test_each_node_has_it_once(nodes):
    nodes.asked()
    assert nodes.changed(nodes.stage("--check", "--diff")) == {nodes.first}
    assert nodes.changed(nodes.stage()) == {nodes.first}
    assert len({one for one in nodes.asked() if one.endswith(".tar")}) == SHARDS
    for host in nodes.cluster.hosts:
        assert nodes.on(host, "cd /scratch/set && sha256sum --check --strict --quiet SHA256SUMS") == ""
        assert nodes.on(host, "find /scratch/set ! -user trainer") == ""
        assert nodes.on(host, "ls -A /scratch").split() == ["set"]
    run = nodes.stage()
    assert nodes.changed(run) == set() and nodes.asked() == []


def test_what_rotted_is_replaced_on_request(nodes):
    nodes.on(nodes.second, "printf x | dd of=/scratch/set/train/3.tar conv=notrunc 2>/dev/null")
    assert nodes.changed(nodes.stage()) == set()
    assert nodes.changed(nodes.stage(stage_verify=True)) == {nodes.second}
    nodes.on(nodes.second, "cd /scratch/set && sha256sum --check --strict --quiet SHA256SUMS")


def test_no_room_is_told_before_anything_is_copied(nodes):
    before = nodes.on(nodes.first, TREE)
    nodes.on(
        nodes.first,
        "mkdir -p /var/tmp/large && cd /var/tmp/large && truncate -s 2G one.tar"
        ' && echo "$(printf 0%.0s $(seq 64))  one.tar" > SHA256SUMS',
    )
    large = {"stage_name": "large", "stage_source": "/var/tmp/large", "stage_checksum": ""}
    run = nodes.stage("--limit", nodes.first, **large)
    assert run.status != 0 and "and 2.0 GiB are to be copied" in run.words
    assert nodes.on(nodes.first, TREE) == before


def test_the_scratch_is_not_taken_down_while_it_is_in_use(nodes):
    nodes.on(nodes.second, "cd /scratch/set && setsid -f sleep 600 >/dev/null 2>&1 </dev/null")
    run = nodes.scratch("--limit", nodes.second, scratch_state="absent")
    assert run.status != 0 and "is in use by" in run.words and "sleep" in run.words
    nodes.on(nodes.second, "pkill -x sleep; findmnt /scratch")


def test_the_data_survives_removal_and_return(nodes):
    before = nodes.on(nodes.second, TREE)
    assert nodes.changed(nodes.scratch("--limit", nodes.second, scratch_state="absent")) == {nodes.second}
    assert nodes.on(nodes.second, "findmnt -n /scratch || true") == ""
    assert nodes.on(nodes.second, "cat /etc/fstab 2>/dev/null || true") == nodes.fstab[nodes.second]
    assert nodes.signatures(nodes.second, nodes.disks[nodes.second]) == ["xfs"]
    assert nodes.changed(nodes.scratch("--limit", nodes.second)) == {nodes.second}
    assert nodes.on(nodes.second, TREE) == before


def test_a_data_set_is_taken_away(nodes):
    nodes.on(nodes.first, "touch /scratch/other")
    gone = {"stage_state": "absent", "stage_source": "", "stage_checksum": ""}
    assert nodes.changed(nodes.stage("--check", **gone)) == set(nodes.cluster.hosts)
    assert nodes.changed(nodes.stage(**gone)) == set(nodes.cluster.hosts)
    assert nodes.on(nodes.first, "ls -A /scratch").split() == ["other"]
    assert nodes.changed(nodes.stage(**gone)) == set()


def test_only_when_told_so_the_disk_is_blank_again(nodes):
    run = nodes.scratch(scratch_state="absent", scratch_destroy_data=True)
    assert nodes.changed(run) == set(nodes.cluster.hosts)
    for host, disk in nodes.disks.items():
        assert nodes.signatures(host, disk) == []
        assert nodes.on(host, "cat /etc/fstab 2>/dev/null || true") == nodes.fstab[host]
    assert nodes.changed(nodes.scratch(scratch_state="absent")) == set()
