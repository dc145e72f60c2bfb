# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three hosts, the first of which somebody took over: whatever it answers, the files of the other two and of the controller stay.

It is the first, so that it solves, downloads and has rank 0 for all. Its lies are in tests/lab/hostile/lies.py; each round is a run of a
playbook in which all lies of the round must have been asked for. The tests run in the order of this file.
"""

import hashlib
import json
import os
import re
import shlex
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from cluster import KEEP, Cluster, Run

from tests.lab import hostile as takeover
from tests.lab.hostile.lies import CANARY, ROUNDS

pytestmark = pytest.mark.lab

SETTINGS = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"},
    "nvidia_driver_without_gpu": False,
    "base_kernel_headers": False,
    "tuning_state": "present",
    "firewall_state": "present",
    "health_state": "present",
    "health_textfile_create": True,
    "verify_start_timeout": 60,
    "train_start_timeout": 60,
}
SECONDS = 400  # of a run of a playbook with lies
MEBIBYTES = 1024  # of any process of the controller
OPTIONS = {
    "train": ("-e", '{"train_nodes": 2, "train_args": ["--epochs", "1", "--samples", "1024"]}'),
    "verify": ("-e", "verify_collectives=false"),  # what they are is a training
}
# Everything that decides what a host does: what, and who owns it, but not when it was written. The training user's runs are
# their own, and what is measured from time to time differs; so does when uv installed a package, which it notes in uv_cache.json.
CONTENTS = r"""
cd / && listed() {
  find etc root home/trainer $0 opt/allreduce/run usr/local var/lib/allreduce boot tmp -xdev \
    -not -path 'var/lib/allreduce/runs*' -not -path 'var/lib/allreduce/health/*' -not -path 'tmp/systemd-private*' \
    -not -path 'tmp/torchinductor*' -not -path 'root/.ansible*' -not -path etc/ld.so.cache -not -name '*.pyc' -not -name __pycache__ \
    -not -name uv_cache.json "$@"
}
listed \( -not -type l -printf '%y %m %u:%g %p\n' -o -printf 'l %u:%g %p -> %l\n' \)
listed -type f -name RECORD -exec sh -c 'grep -v uv_cache.json "$1" | sha256sum | sed "s|-|$1|"' sh {} \;
listed -type f -not -name RECORD -print0 | xargs -0 sha256sum | grep -v -e ' etc/hosts$' -e etc/ssh/ssh_known_hosts -e .ssh/authorized_keys \
  -e etc/allreduce/nodes.json -e allreduce/notes/files.json # digests of these files
grep -H '' etc/hosts etc/ssh/ssh_known_hosts home/trainer/.ssh/authorized_keys root/.ssh/authorized_keys /home/ansible/.ssh/authorized_keys
python3 -c 'import json; [print("etc/allreduce/nodes.json", one) for one in json.load(open("etc/allreduce/nodes.json"))]'
dpkg-query -W | sed 's/^/package /'
systemctl list-unit-files --no-legend --no-pager | awk '{print "unit", $1, $2}'
nft list ruleset | sed 's/counter packages [0-9]* bytes [0-9]*/counter/; s/^/nft /'
"""


class Hostile(Cluster):
    """Three hosts, and what must stay of two of them."""

    def __init__(self):
        super().__init__("hostile", 3)
        self.hostile, *self.others = self.hosts
        settings = self.inventory / "group_vars" / "gpu_nodes.yml"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(yaml.safe_dump(SETTINGS, sort_keys=False), encoding="utf-8")
        # As in a cluster with a firewall: what a node says of its address must not decide whether the others can be connected.
        for host in self.hosts:
            declared = self.inventory / "host_vars" / f"{host}.yml"
            declared.parent.mkdir(exist_ok=True)
            declared.write_text(yaml.safe_dump({"gpu_cluster_address": self.address(host)}), encoding="utf-8")
        self.on(self.hostile, f"[ ! -e {takeover.HONEST} ] || mv {takeover.HONEST} {takeover.PYTHON}")

    def bounded(self, playbook, *options, seconds=SECONDS):
        """A run of a playbook, the seconds it took, and the mebibytes of its largest process."""
        process = self.start(f"playbooks/{playbook}.yml", *options)
        watch = threading.Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
        watch.start()
        began = time.monotonic()
        try:
            # Bytes that are no text are what a test looks for.
            output = process.stdout.buffer.read().decode("utf-8", "surrogateescape")
        finally:
            watch.cancel()
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Run(process.returncode, output), time.monotonic() - began, usage.ru_maxrss // 1024

    def contents(self, environments=True):
        """What the honest hosts have: {host: lines that each say what something is}; of environments only where a run may touch them."""
        place = "opt/allreduce/envs" if environments else ""
        with ThreadPoolExecutor() as pool:
            found = pool.map(
                lambda host: set(self.on(host, f"sh -c {shlex.quote(CONTENTS)} '{place}'").splitlines()), self.others
            )
        return dict(zip(self.others, found, strict=True))

    def controller(self):
        """What the controller has: {path: digest}."""
        home = Path.home()
        noise = (
            ".reports",
            ".ansible/tmp",
            ".ansible/cp",
            ".ansible/galaxy_cache",
            ".ansible/allreduce/runs",
            ".known_hosts",
        )
        roots = [self.inventory, home / ".ssh", home / ".ansible"]
        found = [path for root in roots for path in root.rglob("*") if path.is_file()]
        kept = [path for path in found if not any(f"/{one}" in str(path) for one in noise)]
        canaries = [*Path("/tmp").glob(f"{Path(CANARY).name}*"), *Path("/tmp").glob("*escaped.out")]  # noqa: S108
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept} | dict.fromkeys(
            map(str, canaries), ""
        )

    def begin(self, name):
        self.on(self.hostile, takeover.begin(name))

    def taken(self):
        """Lies that were told in this round."""
        return set(self.on(self.hostile, f"cat {takeover.HOME}/taken 2>/dev/null", check=False).split())

    def newest(self, what):
        """The newest file of a kind below the reports."""
        return max((self.inventory / ".reports").rglob(what), key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="module")
def cluster():
    made = Hostile()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def honest(cluster):
    """What there is after a site of three honest hosts; then the first is taken over, and site of the others alone changes nothing."""
    run, *_cost = cluster.bounded("site", seconds=1200)
    assert run.status == 0, run.output[-6000:]
    cluster.on(cluster.hostile, takeover.takeover(cluster.address(cluster.others[0])))
    alone, *_cost = cluster.bounded("site", "--limit", f"!{cluster.hostile}")
    assert alone.status == 0, alone.output[-6000:]
    return {environments: cluster.contents(environments) for environments in (True, False)}, cluster.controller()


def difference(cluster, before, after):
    """Return {host: (what is gone, what came)}; a host that is left out is gone from the files that connect the nodes."""
    about = re.compile(
        rf"^[^:]*(hosts|authorized_keys:|nodes.json).*({cluster.hostile}|{re.escape(cluster.address(cluster.hostile))})\b"
    )
    found = {}
    for host, lines in before.items():
        gone, came = lines - after[host], after[host] - lines
        gone = {line for line in gone if not about.search(line)}
        if gone or came:
            found[host] = (sorted(gone)[:20], sorted(came)[:20])
    return found


def unharmed(cluster, honest, environments=False):
    """Hosts and controller are as without the hostile host, and nothing that a lie would create is there."""
    contents, controller = honest
    assert difference(cluster, contents[environments], cluster.contents(environments)) == {}
    assert sorted(controller.items() ^ cluster.controller().items()) == []


def harmless(run):
    """Nothing of the hostile host reaches a terminal, and no program of ours crashes."""
    shown = re.findall(r"[^\n]*[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udcff][^\n]*", run.output)
    assert shown == [], shown[:3]
    assert "Traceback" not in run.output, run.output[-6000:]


def judged(cluster, run, one):
    """The hostile host has failed or is left out, and is named; the others have not failed."""
    bad = {host: counts["failed"] + counts["unreachable"] for host, counts in run.recap.items()}
    if (
        one.playbook == "train" and one.outcome == "failed"
    ):  # a training is over for all its nodes; it says whose fault that is
        assert (
            json.loads(cluster.newest("result.json").read_text(encoding="utf-8"))["failure"]["node"] == cluster.hostile
        )
        assert f"failed on {cluster.hostile}" in run.words, run.output[-6000:]
    elif one.playbook == "verify":  # the verdict about all is that of the first host which is still there
        assert all(f"{host}: passed" in run.words for host in cluster.others), run.output[-6000:]
        assert re.search(rf"checks failed: .* on {cluster.hostile}\b", run.words), run.output[-6000:]
    else:
        assert all(bad.get(host, 0) == 0 for host in cluster.others), run.output[-6000:]
    if one.outcome == "failed":
        assert run.status != 0 and bad[cluster.hostile], run.output[-6000:]
    elif one.outcome == "left_out":
        assert f"{cluster.hostile} is left out" in run.words, run.output[-6000:]
    else:
        assert run.status == 0, run.output[-6000:]


@pytest.mark.parametrize("name", ROUNDS)
def test_10_a_round_of_lies(cluster, honest, name):
    one = ROUNDS[name]
    for who, command in one.before.items():
        for host in [cluster.hostile] if who == "hostile" else cluster.others:
            cluster.on(host, command)
    cluster.begin(name)
    run, seconds, mebibytes = cluster.bounded(one.playbook, *OPTIONS.get(one.playbook, ()), *one.options)
    taken = cluster.taken()
    cluster.begin("")
    print(f"{name}: {seconds:.0f} s, {mebibytes} MiB, status {run.status}")
    (cluster.inventory / ".reports").mkdir(exist_ok=True)
    (cluster.inventory / ".reports" / f"{name}.log").write_bytes(run.output.encode("utf-8", "surrogateescape"))
    assert taken == {lie.name for lie in one.lies}, run.output[-6000:]
    harmless(run)
    judged(cluster, run, one)
    assert seconds < SECONDS
    assert mebibytes < MEBIBYTES
    unharmed(cluster, honest, environments=bool(one.before))


def test_20_the_report_names_the_host(cluster, honest):
    run, seconds, _mebibytes = cluster.bounded("report")
    assert run.status == 0, run.output[-6000:]
    harmless(run)
    assert cluster.hostile in run.words
    page = cluster.newest("*.html").read_text(encoding="utf-8")
    assert cluster.hostile in page and "<script>alert" not in page and "\x1b" not in page
    assert seconds < 60
    unharmed(cluster, honest)


def test_21_what_came_from_a_training_is_files(cluster):
    """No link, no device, nothing that a lie put elsewhere, nothing that runs as somebody else."""
    place = cluster.inventory / ".reports"
    found = [
        path
        for path in place.rglob("*")
        if path.is_symlink() or not (path.is_file() or path.is_dir()) or path.lstat().st_mode & 0o7000
    ]
    assert found == []
    assert list(place.rglob("*escaped.out")) == [] and list(place.rglob("authorized_keys")) == []
    assert any(place.rglob("zeros.out")), "the archive of the lie was never opened"


def test_30_the_others_train_without_it(cluster, honest):
    options = {"train_nodes": cluster.others, "train_args": ["--epochs", "1", "--samples", "1024"]}
    run, *_cost = cluster.bounded("train", "--limit", f"!{cluster.hostile}", "-e", json.dumps(options))
    assert run.status == 0, run.output[-6000:]
    unharmed(cluster, honest, environments=True)
