# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod for two hosts: compiled on one of them, the same wheel on both, and a training with horovodrun. One compilation in all."""

import json
import re
import time

import pytest
from cluster import CHECKOUT, KEEP, Cluster

from tests.lab import wheels

pytestmark = pytest.mark.lab

REQUEST = {
    "driver": "535",
    "driver_source": "distribution",
    "pytorch": "2.13.0",
    "pytorch_index": "cpu",
    "python": "3.11",
}
HOROVOD = {**REQUEST, "horovod": "0.28.1"}
# Requests change from test to test, and the lock of the stack with them.
RENEW = {"stack_lock_renew": True}
PREPARED = ("--tags", "base,python_env,frameworks,horovod,cluster_ssh")
ROLES = ("--tags", "python_env,frameworks,horovod")
CACHE = "/opt/allreduce/cache/horovod"
SITE = "/opt/allreduce/envs/main/lib/python3.11/site-packages"
RUNS = "/var/lib/allreduce/runs"
BIN = "/opt/allreduce/envs/main/bin"
UNINSTALL = f"/opt/allreduce/uv/bin/uv --no-config --no-cache pip uninstall -q --python {BIN}/python horovod"
FAILS = """
import sys, time
import horovod.torch as hvd
hvd.init()
if hvd.rank() == 1:
    print("the data set is not where I expected it", file=sys.stderr)
    sys.exit(3)
time.sleep(600)
"""
SAYS = """
import glob, os, pathlib
import horovod.torch as hvd
hvd.init()
print(open("/proc/self/cgroup").read(), hvd.rank(), hvd.size(), hvd.local_rank(), os.environ["WORLD_SIZE"], flush=True)
lines = [pathlib.Path(path).read_text() for path in glob.glob("/proc/[0-9]*/cmdline") if os.path.exists(path)]
print(sum("horovodrun.py" in line for line in lines), any(os.environ["API_KEY"] in line for line in lines), flush=True)
hvd.allreduce(__import__("torch").zeros(1))
hvd.shutdown()
"""
SLEEPS = "import time\nimport horovod.torch as hvd\nhvd.init()\nprint('asleep', flush=True)\ntime.sleep(900)\n"
COMPILERS = "pgrep -c cc1plus || true"
# A compilation that was cut off leaves neither; how long one took stands between them.
TIMES = f"stat -c %Y {CACHE}/*/recipe.json {CACHE}/*/wheel.sha256"


class Two(Cluster):
    """Two hosts without Horovod, whatever an earlier run left."""

    def __init__(self):
        wheels.ensure("horovod")
        super().__init__("horovod", 2)
        run = self.site(REQUEST, roles=PREPARED)
        assert run.status == 0, run.output[-6000:]

    def site(self, request, *options, roles=ROLES, **variables):
        more = {**RENEW, "gpu_stack_request": request, **variables}
        return self.play("playbooks/site.yml", *roles, "-e", json.dumps(more), *options)

    def present(self):
        run = self.site(HOROVOD)
        assert run.status == 0, run.output[-6000:]
        return {host: run.recap[host]["changed"] for host in self.hosts}

    def train(self, *options, **variables):
        """Playbook train with horovodrun as a running process."""
        self.asked(f"rm -rf {RUNS}")
        more = {"train_launcher": "horovodrun", "train_lease": 20, **variables}
        return self.start("playbooks/train.yml", "-e", json.dumps(more), *options)

    def trained(self, *options, **variables):
        """Exit status, output with its white space folded, and result of a run to its end."""
        return self.ended(self.train(*options, **variables))

    def ended(self, process):
        output = process.communicate(timeout=420)[0]
        newest = sorted((self.inventory / ".reports" / "training").glob("*/result.json"))[-1]
        return process.returncode, " ".join(output.split()), json.loads(newest.read_text(encoding="utf-8"))

    def is_empty(self, seconds=15):
        """No process of the training user is left after at most SECONDS."""
        deadline = time.monotonic() + seconds
        while set(self.asked("pgrep -u trainer -c . || true").values()) != {"0"}:
            assert time.monotonic() < deadline, self.asked("ps -u trainer -o pid,args || true")
            time.sleep(1)

    def asked(self, command):
        """What a command says on each host."""
        return {host: self.on(host, command).strip() for host in self.hosts}

    def checked(self):
        """{host: status} of the check that compares Horovod with its plan."""
        return {host: checks["main_horovod_build"]["status"] for host, checks in self.verified().items()}

    def verified(self):
        """{host: {name: check}} of playbook verify."""
        more = {**RENEW, "gpu_stack_request": HOROVOD, "verify_collectives": False, "verify_network": False}
        self.play("playbooks/verify.yml", "-e", json.dumps(more))
        document = json.loads((self.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
        return {host: {one["name"]: one for one in node["checks"]} for host, node in document["nodes"].items()}


@pytest.fixture(scope="module")
def two():
    """The hosts; ALLREDUCE_KEEP=1 leaves them with the wheel, and takes them again."""
    made = Two()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture
def uncompiled(two):
    """The hosts as they are before anything was compiled; wheels of an earlier run come back."""
    for host in two.hosts:
        two.on(host, f"rm -rf /root/horovod; [ ! -e {CACHE} ] || mv {CACHE} /root/horovod")
    yield two
    for host in two.hosts:
        two.on(host, f"rm -rf {CACHE}; [ ! -e /root/horovod ] || mv /root/horovod {CACHE}")


@pytest.fixture(scope="module")
def compiled(two):
    """The hosts with Horovod, compiled where no earlier run did."""
    assert all(two.present().values())
    return two


def test_check_mode_says_what_it_would_compile(uncompiled):
    before = uncompiled.fingerprints()
    run = uncompiled.site(HOROVOD, "--check")
    first, second = uncompiled.hosts
    assert run.status == 0, run.output[-6000:]
    assert (
        f"Horovod 0.28.1 of environment main is compiled on {first}, which takes several minutes. Other hosts that get the wheel: 1."
        in run.words
    )
    assert all(run.recap[host]["changed"] for host in (first, second))
    assert uncompiled.fingerprints() == before


def test_a_source_of_another_checksum_is_refused(uncompiled):
    first, second = uncompiled.hosts
    uncompiled.on(second, "mkdir -p /srv/sources")
    uncompiled.on(first, "mkdir -p /srv/sources && echo damaged > /srv/sources/horovod-0.28.1.tar.gz")
    places = re.search(r"python_env_find_links:\n\s+- (\S+)", (uncompiled.inventory / "hosts.yml").read_text("utf-8"))
    run = uncompiled.site(HOROVOD, python_env_find_links=["/srv/sources", places[1]])
    assert run.status != 0
    assert (
        f"Cannot compile Horovod 0.28.1 on {first}: The checksum of file:///srv/sources/horovod-0.28.1.tar.gz did not match"
        in run.words
    )
    assert f"There is no Horovod for environment main from {first}; the message of that host says why" in run.words
    assert uncompiled.on(second, f"ls {CACHE} 2>/dev/null || true") == ""
    assert uncompiled.asked(f"ls -d {SITE}/horovod* 2>/dev/null || true") == dict.fromkeys(uncompiled.hosts, "")


def test_a_compilation_that_is_cut_off_ends_the_run(uncompiled):
    first = uncompiled.hosts[0]
    variables = json.dumps({**RENEW, "gpu_stack_request": HOROVOD})
    process = uncompiled.start("playbooks/site.yml", *ROLES, "-e", variables)
    deadline = time.monotonic() + 600
    while uncompiled.on(first, COMPILERS).strip() == "0":
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0][-6000:]
        time.sleep(2)
    # The one who compiles is nobody that the host knows, and reaches no network.
    user = uncompiled.on(first, "ps -o user= -p $(pgrep -o cc1plus)").strip()
    assert user not in ("root", "trainer", "ansible")
    assert uncompiled.on(first, "nsenter -t $(pgrep -o cc1plus) -n ip route").strip() == ""
    uncompiled.on(first, "systemctl kill --signal=KILL allreduce-horovod.service")
    output = " ".join(process.communicate(timeout=300)[0].split())
    assert process.returncode != 0
    assert f"Cannot compile Horovod 0.28.1 on {first}: the compilation ended with" in output
    assert uncompiled.on(first, f"ls {CACHE}/*/wheel.sha256 {CACHE}/*/*.part 2>/dev/null || true") == ""
    assert uncompiled.on(first, COMPILERS).strip() == "0"


def test_one_host_compiles_and_both_get_the_wheel(compiled):
    first, second = compiled.hosts
    wheel = compiled.asked(f"cat {CACHE}/*/wheel.sha256")
    assert wheel[first] == wheel[second] != ""
    assert compiled.asked(f"cd {CACHE}/*/ && sha256sum -c wheel.sha256 | sed 's/.*: //'") == dict.fromkeys(
        compiled.hosts, "OK"
    )
    assert compiled.asked(f"ls {CACHE}/*/compile.log 2>/dev/null | wc -l") == {first: "1", second: "0"}
    tools = compiled.asked(f"ls -d {SITE}/setuptools-69* {SITE}/wheel-* 2>/dev/null || true")
    assert tools == dict.fromkeys(compiled.hosts, "")
    assert compiled.present() == dict.fromkeys(compiled.hosts, 0)


def test_verify_compares_the_build_and_a_lost_package_comes_back(compiled):
    first, second = compiled.hosts
    assert compiled.checked() == dict.fromkeys(compiled.hosts, "passed")
    compiled.on(second, f"truncate -s 4096 {SITE}/horovod/torch/mpi_lib_v2*.so")
    assert compiled.checked() == {first: "passed", second: "failed"}
    times = compiled.on(first, TIMES)
    compiled.on(second, UNINSTALL)
    changed = compiled.present()
    assert changed[second] and not changed[first]
    whole = compiled.asked(f"cat {SITE}/horovod/torch/mpi_lib_v2*.so | sha256sum")
    assert whole[first] == whole[second]
    assert compiled.on(first, TIMES) == times


def test_files_that_were_changed_by_hand_are_named_and_come_back(compiled):
    first, second = compiled.hosts
    files = f"{SITE}/torch/version.py {SITE}/horovod/__init__.py {SITE}/sympy/__init__.py"
    before = compiled.asked(f"sha256sum {files}")
    # One is longer, one as long as it was, one is gone.
    compiled.on(
        second,
        f"cd {SITE}; echo '# mine' >> torch/version.py; sed -i 's/horovod/HOROVOD/' horovod/__init__.py; rm sympy/__init__.py",
    )
    found = {host: checks["main_files"] for host, checks in compiled.verified().items()}
    assert {host: one["status"] for host, one in found.items()} == {first: "passed", second: "failed"}
    for path in files.split():
        assert f"changed: {path.removeprefix('/opt/allreduce/envs/main/')}" in found[second]["reason"], found[second]
    changed = compiled.present()
    assert changed[second] and not changed[first]
    assert compiled.asked(f"sha256sum {files}") == before
    assert compiled.present() == dict.fromkeys(compiled.hosts, 0)


def test_both_hosts_train(compiled):
    first, second = compiled.hosts
    script = (CHECKOUT / "examples" / "train_horovod.py").read_text(encoding="utf-8")
    for host in compiled.hosts:
        compiled.on(host, f"rm -rf /home/trainer/kept; cat > /home/trainer/train_horovod.py <<'END'\n{script}END")
    start = f"{BIN}/horovodrun -np 2 -H {first}:1,{second}:1 {BIN}/python train_horovod.py --checkpoint-dir /home/trainer/kept"
    said = compiled.on(first, f"runuser -l trainer -c '{start} --epochs 3' 2>&1")
    assert "2 ranks on cpu with Gloo" in said
    before, after = map(float, re.search(r"loss ([\d.]+) -> ([\d.]+), \d+ samples/s, 2 ranks", said).groups())
    assert after < before / 2, said[-2000:]
    # One rank of each node writes; what one node lost, it gets from the other.
    assert compiled.asked("ls /home/trainer/kept") == dict.fromkeys(compiled.hosts, "checkpoint.pt")
    compiled.on(first, "rm -r /home/trainer/kept")
    said = compiled.on(first, f"runuser -l trainer -c '{start} --epochs 4 --resume' 2>&1")
    assert "resumed after epoch 3" in said and "epoch 4/4" in said


def test_playbook_train_runs_horovodrun(compiled):
    status, said, result = compiled.trained(train_script="examples/train_horovod.py", train_args="--epochs 3")
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"], result["nodes"]) == ("succeeded", 2, compiled.hosts)
    assert result["metrics"]["loss_last"] < result["metrics"]["loss_first"] / 2
    compiled.is_empty()


def test_ranks_of_horovodrun_run_in_the_units_of_their_nodes_and_show_no_variable(compiled, script):
    variables = {"API_KEY": "hidden-from-all"}
    status, said, result = compiled.trained(train_script=script("says.py", SAYS), train_variables=variables)
    assert status == 0, said[-6000:]
    for rank, host in enumerate(compiled.hosts):
        logs = compiled.inventory / ".reports" / "training" / result["run_id"] / "logs"
        text = (logs / host / f"rank{rank}.out").read_text(encoding="utf-8")
        assert f"allreduce-train-{result['run_id']}.service" in text, text
        assert text.split()[-6:-2] == [str(rank), "2", "0", "2"]
        # Command lines are seen, horovodrun's among them, and none has the variable.
        assert text.split()[-2:] == [str(int(rank == 0)), "False"]
    compiled.is_empty()


def test_a_node_alone(compiled):
    arguments = {"train_script": "examples/train_horovod.py", "train_args": "--epochs 2", "train_nodes": 1}
    status, said, result = compiled.trained(**arguments, train_nproc_per_node="2")
    assert (status, result["world_size"]) == (0, 2), said[-6000:]


def test_a_rank_of_horovodrun_that_exits_3(compiled, script):
    status, said, result = compiled.trained(train_script=script("fails.py", FAILS))
    assert status != 0
    assert "the data set is not where I expected it" in said
    failure = result["failure"]
    assert (failure["node"], failure["rank"], failure["exit_code"]) == (compiled.hosts[1], 1, 3)
    compiled.is_empty()


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_rank_of_horovodrun(compiled, script, number):
    process = compiled.train(train_script=script("sleeps.py", SLEEPS))
    deadline = time.monotonic() + 180
    asleep = f"cat {RUNS}/*/logs/rank*.out 2>/dev/null || true"
    while set(compiled.asked(f"{asleep} | tail -1").values()) != {"asleep"}:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0][-4000:]
        time.sleep(1)
    compiled.on(compiled.hosts[number], "pkill -KILL -u trainer -f '[p]ython -u sleeps.py'")
    status, _said, result = compiled.ended(process)
    assert status != 0
    failure = result["failure"]
    assert (failure["node"], failure["rank"], failure["exit_code"]) == (compiled.hosts[number], number, -9)
    compiled.is_empty()


def test_horovod_goes_and_comes_back_without_a_compilation(compiled):
    first = compiled.hosts[0]
    times = compiled.on(first, TIMES)
    run = compiled.site(REQUEST)
    assert run.status == 0, run.output[-6000:]
    assert compiled.asked(f"ls -d {SITE}/horovod* 2>/dev/null || true") == dict.fromkeys(compiled.hosts, "")
    run = compiled.site(REQUEST)
    assert {host: run.recap[host]["changed"] for host in compiled.hosts} == dict.fromkeys(compiled.hosts, 0)
    status, said, _result = compiled.trained(train_script="examples/train_horovod.py")
    assert status != 0
    assert f"The training environment on this node has no {BIN}/horovodrun; set horovod in gpu_stack_request" in said
    assert all(compiled.present().values())
    assert compiled.on(first, TIMES) == times
