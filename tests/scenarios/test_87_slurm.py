# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's own Slurm on Debian 12 and 13: a controller with database, three nodes, a login node; from bare hosts to jobs, faults, removal.

On Debian 12 playbook train runs there through it, on processors: the lab has PyTorch for its Python only.

Not proven: that cgroups confine a job to its GPUs. The hosts' cgroups lack the controllers for it, so jobs only find in their environment
which GPUs are their own. The device files are there, and nothing is behind them.
"""

import json
import os
import re
import signal
import time

import pytest
from cluster import CHECKOUT, KEEP
from slurm_hosts import DEVICES, FAULT, HEALTH, IDLE, OFF, ON, PLAYBOOK, REASON, Queue
from training_hosts import Launched

pytestmark = pytest.mark.lab

UID = 2000
ALL_IDLE = "gpu* 3 idle"
# Two GPUs at a time for each user, and a QoS that takes those of others.
LIMITED = {
    **ON,
    "slurm_qos": [
        {"name": "long", "priority": 1, "max_minutes": 60, "gpus_per_user": 2}, {"name": "urgent", "priority": 10, "preempts": ["long"]},
    ],
    "slurm_accounts": [
        {"name": "physics", "parent": "science", "users": ["ada"], "qos": ["long", "urgent"], "default_qos": "long", "gpus": 6},
        {"name": "science", "shares": 3},
    ],
}  # fmt: skip
# Long enough to be ended in the middle.
TRAINING = "--epochs 40 --samples 2048 --batch-size 32 --width 4 --checkpoint-dir checkpoints --checkpoint-every 10 --resume --timeout 60"
WATCHED = {**ON, **HEALTH}
# Everything that the role or its packages bring, but logs and the state that is kept.
OURS = (
    "find /etc /opt /var/lib/allreduce -xdev '(' -path '*slurm*' -o -path '*munge*' ')' -not -path '/etc/rc*'; "
    "dpkg-query -W -f '${Package} ${db:Status-Status}\n' 'slurm*' munge mariadb-server 2>/dev/null | grep -v not-installed; "
    "systemctl list-units --all --plain --no-legend 'slurm*' 'munge*' 'mariadb*' | grep -w loaded"
)


class Trained(Launched):
    """The nodes of a queue with an environment, and their training user, whom the controller knows, too."""

    def __init__(self, queue):
        self.__dict__.update(vars(queue.cluster) | {"inventory": queue.inventory, "hosts": queue.nodes})
        self.queue = queue
        more = {**ON, "cluster_ssh_uid": UID}
        run = self.play(
            "playbooks/site.yml", "--tags", "base,python_env,frameworks,cluster_ssh", "-e", json.dumps(more)
        )
        assert run.status == 0, run.output[-6000:]
        queue.on(queue.controller, f"id trainer 2>/dev/null || useradd --uid {UID} --create-home trainer")

    def accounted(self, job):
        """What is accounted of a job: its state, user and resources."""
        asked = f"sacct --allocations --noheader --parsable2 --format=State,User,AllocTRES --duplicates --jobs={job}"
        return [line.split("|") for line in self.queue.run(asked).splitlines()]


@pytest.fixture(scope="module", params=["debian13", "debian12"])
def queue(request):
    made = Queue(request.param, nodes=3, login=1)
    yield made
    if not KEEP:
        made.cluster.down()


@pytest.fixture(scope="module")
def trained(queue):
    if queue.cluster.name != "queue12":
        pytest.skip("the lab has PyTorch for Debian 12's Python only")
    return Trained(queue)


def failed(checks):
    return {name: reason for name, (status, reason) in checks.items() if status != "passed"}


def test_10_check_mode_predicts_and_changes_nothing(queue):
    before = {host: queue.on(host, OURS, check=False) for host in queue.hosts}
    changes, said = queue.play(ON, "--check", "--diff")
    assert all(changes.values()) and "+SelectType=select/cons_tres" in said
    assert {host: queue.on(host, OURS, check=False) for host in queue.hosts} == before


def test_20_from_bare_hosts_to_idle_nodes_and_a_second_run_changes_nothing(queue):
    changes, said = queue.play(ON, "--diff", "-vvv")
    assert all(changes.values())
    key = queue.on(queue.controller, "base64 -w0 /etc/munge/munge.key")
    assert key not in said
    assert "Keep the key of the cluster" in said
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    for host in queue.hosts:
        assert queue.on(host, "base64 -w0 /etc/munge/munge.key") == key
        assert queue.on(host, "stat -c '%a %U:%G %s' /etc/munge/munge.key") == "400 munge:munge 1024\n"
    assert queue.on(queue.controller, "stat -c '%a %U' /etc/slurm/slurmdbd.conf") == "600 slurm\n"
    assert not queue.on(queue.controller, "grep -i pass /etc/slurm/*", check=False)
    assert not any(queue.on(node, "ls /etc/slurm/slurm.conf", check=False) for node in queue.nodes)


def test_30_jobs_run_on_all_nodes_with_their_gpus_and_are_accounted(queue):
    assert sorted(queue.run("srun --nodes=3 hostname").split()) == sorted(queue.nodes)
    devices = queue.run("srun --gres=gpu:2 sh -c 'sleep 2; echo $CUDA_VISIBLE_DEVICES'")
    assert re.fullmatch(r"[0-3],[0-3]", devices)
    # Where slurmctld cannot resolve the name of who asks, every srun costs ten seconds, and several at a time never end.
    began = time.monotonic()
    queue.run("sh -c 'for turn in 1 2 3; do srun --mem=1G true & done; wait'")
    assert time.monotonic() - began < 30
    # Two jobs share a node, and no GPU.
    place = "/tmp/devices-%j"
    asked = f"--nodelist={queue.nodes[0]} --gres=gpu:2 --mem=1G --output={place} --wrap='echo $CUDA_VISIBLE_DEVICES; sleep 3'"
    jobs = [queue.run(f"sbatch --parsable {asked}") for _turn in range(2)]
    queue.until(f"squeue --noheader --jobs={','.join(jobs)}", "")
    said = [queue.on(queue.nodes[0], f"cat {place.replace('%j', job)}") for job in jobs]
    assert sorted(",".join(line.strip() for line in said).split(",")) == ["0", "1", "2", "3"]
    accounted = "sacct --allocations --noheader --parsable2 --format=State,ElapsedRaw,AllocTRES --starttime=now-1hour"
    found = [line for line in queue.run(accounted).splitlines() if "gres/gpu=2" in line]
    assert len(found) == 3 and all(line.startswith("COMPLETED|") and int(line.split("|")[1]) >= 2 for line in found)
    assert "gres|gpu|" in queue.run("sacctmgr --noheader --parsable2 show tres")


def test_32_users_start_jobs_on_a_login_node(queue):
    """Where slurmctld or srun cannot resolve the name of the other, the job waits or never ends."""
    [login] = queue.login
    said = queue.on(login, "timeout 60 srun --nodes=3 --gres=gpu:1 --mem=1G hostname")
    assert sorted(said.split()) == sorted(queue.nodes)
    queue.on(login, "timeout 60 sbatch --wait --gres=gpu:2 --output=/dev/null --wrap=true")
    assert "gpu:nvidia_a100-sxm4-40gb:4" in queue.on(login, "timeout 60 sinfo --noheader --format=%G")
    assert "COMPLETED" in queue.on(login, "timeout 60 sacct --noheader --allocations --format=State")
    there = "dpkg-query -W -f '${Package} ${db:Status-Status}\n' slurmd slurmctld slurmdbd mariadb-server 2>/dev/null | grep -w installed"
    assert queue.on(login, there, check=False) == ""


SHOWN = "scontrol show topology"


def at_switches(queue, *places):
    """The variables of a cluster whose nodes are at these switches."""
    said = dict(zip(queue.nodes, places, strict=False))
    return {**ON, "slurm_switch": f"{{{{ {said}.get(inventory_hostname, '') }}}}"}


def test_33_slurm_has_the_tree_that_is_declared_and_a_job_over_two_switches_runs(queue):
    first, second, third = queue.nodes
    held = "sha256sum /etc/slurm/*.conf"
    before = queue.on(queue.controller, held)
    for places, words in (
        (["row1/leaf1", "row1/leaf1"], f"{third}: not at a switch, while other nodes have slurm_switch"),
        (
            ["row1", "row1/leaf2", "row1/leaf2"],
            "slurm_switch is row1 for a node, and other switches are below that one",
        ),
        (["row1/leaf 1", "row1/leaf2", "row1/leaf2"], "write it like leaf3, or row1/leaf3"),
    ):
        options = ("-e", json.dumps(at_switches(queue, *places)))
        run = queue.cluster.play(PLAYBOOK, *options, inventory=queue.inventory)
        assert run.status != 0 and words in run.words, run.output[-3000:]
    assert queue.on(queue.controller, held) == before
    declared = at_switches(queue, "row1/leaf1", "row1/leaf2", "row2/leaf1")
    assert queue.play(declared)[0][queue.controller]
    again, said = queue.play(declared)
    assert set(again.values()) == {0}, said[-6000:]
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    tree = {}
    for line in queue.run(SHOWN).splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        tree[words["SwitchName"]] = (int(words["Level"]), words["Nodes"], words.get("Switches", ""))
    assert {name: (level, nodes) for name, (level, nodes, _below) in tree.items() if level == 0} == {
        "row1.leaf1": (0, first), "row1.leaf2": (0, second), "row2.leaf1": (0, third),
    }  # fmt: skip
    assert {name: (level, below) for name, (level, _nodes, below) in tree.items() if level} == {
        "row1": (1, "row1.leaf[1-2]"), "row2": (1, "row2.leaf1"), "root": (2, "row[1-2]"),
    }  # fmt: skip
    assert sorted(queue.run("srun --nodes=3 --gres=gpu:1 hostname").split()) == sorted(queue.nodes)
    # Who asks for one switch waits for it as long as it says.
    began = time.monotonic()
    queue.run("srun --nodes=2 --switches=1@00:05 true")
    assert time.monotonic() - began > 4
    queue.play(ON)
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]
    assert queue.on(queue.controller, held) == before
    assert "SwitchName" not in queue.run(f"sh -c '{SHOWN} 2>&1 || true'")
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)


def test_35_limits_hold_who_has_no_account_is_refused_and_all_goes_when_it_is_not_declared(queue):
    first = queue.nodes[0]
    for host in queue.hosts:
        queue.on(
            host,
            "for one in 4321:ada 4322:eve; do id ${one#*:} >/dev/null 2>&1 || useradd --uid ${one%:*} --create-home ${one#*:}; done",
        )
    queue.run("sacctmgr --immediate add qos theirs")
    queue.run("sacctmgr --immediate add account chemistry")
    shown = "sh -c 'sacctmgr --noheader --parsable2 show qos format=name; sacctmgr --noheader --parsable2 show account format=account'"
    before = queue.run(shown)
    asked = "sbatch --parsable --chdir=/tmp --mem=1G"
    changes, said = queue.play(LIMITED, "--check", "--diff")
    assert changes[queue.controller] and "+qos long: priority=1 max_minutes=60 gpus_per_user=2" in said
    assert "+# QoS or limits are declared: users without an account cannot submit jobs" in said
    assert queue.run(shown) == before
    queue.run(f"runuser -u eve -- {asked} --wrap=true")
    assert all(queue.play(LIMITED)[0].values())
    again, said = queue.play(LIMITED, "--diff")
    assert set(again.values()) == {0}, said[-6000:]
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    # Root has an account of Slurm's own.
    assert queue.run("srun --mem=1G hostname") in queue.nodes
    refused = queue.on(queue.controller, f"runuser -u eve -- {asked} --wrap=true 2>&1", check=False)
    assert "Invalid account or account/partition combination specified" in refused
    kept = queue.run(f"runuser -u ada -- {asked} --nodelist={first} --gres=gpu:2 --wrap='sleep 600'")
    queue.until(f"squeue --noheader --jobs={kept} --format='%T %a %q'", "RUNNING physics long")
    held = queue.run(f"runuser -u ada -- {asked} --gres=gpu:1 --wrap=true")
    queue.until(f"squeue --noheader --jobs={held} --format='%T %r'", "PENDING QOSMaxGRESPerUser")
    # It needs all GPUs of that node, and gets them.
    taken = queue.run(f"runuser -u ada -- {asked} --qos=urgent --nodelist={first} --gres=gpu:4 --wrap='sleep 600'")
    queue.until(f"squeue --noheader --jobs={taken} --format=%T", "RUNNING", 120)
    assert queue.run(f"squeue --noheader --jobs={kept} --format=%T") == "PENDING"
    queue.run("scancel --user=ada")
    queue.until("squeue --noheader --user=ada", "")
    # One limit of many changes, and nothing restarts.
    began = queue.run("systemctl show --value --property=MainPID slurmctld")
    qos = [{"name": "long", "gpus_per_user": 1}, LIMITED["slurm_qos"][1]]
    changes, said = queue.play({**LIMITED, "slurm_qos": qos}, "--diff")
    assert changes == {**dict.fromkeys(queue.hosts, 0), queue.controller: 1}, said[-6000:]
    assert queue.run("systemctl show --value --property=MainPID slurmctld") == began
    limits = "sacctmgr --noheader --parsable2 show qos long format=priority,maxwall,maxtresperuser"
    assert queue.run(limits) == "0||gres/gpu=1"
    queue.play(ON)
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]
    assert queue.run(shown) == before
    assert not queue.on(queue.controller, "ls /var/lib/allreduce/slurm_accounting.json", check=False)
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    queue.run(f"runuser -u eve -- {asked} --wrap=true")
    queue.until("squeue --noheader --user=eve", "")
    queue.run("sacctmgr --immediate delete qos theirs")
    queue.run("sacctmgr --immediate delete account chemistry")


def test_40_a_key_that_differs_is_found_and_mended(queue, tmp_path):
    second = queue.nodes[1]
    assert not failed(queue.checks(tmp_path, second))
    queue.on(second, "head -c 1024 /dev/urandom > /etc/munge/munge.key; systemctl restart munge")
    found = failed(queue.checks(tmp_path, second))
    assert set(found) == {"slurm_trust"} and "its key of munge, or its clock, is another one" in found["slurm_trust"]
    changes, _said = queue.play(ON)
    assert changes == {**dict.fromkeys(queue.hosts, 0), second: 2}
    assert not failed(queue.checks(tmp_path, second))


def test_42_a_key_that_no_munged_takes_is_named_and_changes_no_node(queue):
    path = "/etc/munge/munge.key"
    key = queue.on(queue.controller, f"base64 -w0 {path}")
    queue.on(queue.controller, f"echo short > {path}")
    run = queue.cluster.play(PLAYBOOK, "-e", json.dumps(ON), inventory=queue.inventory)
    queue.on(queue.controller, f"echo {key} | base64 -d > {path}")
    assert run.status != 0 and not any(one["changed"] for one in run.recap.values()), run.output[-3000:]
    assert f"{path} has 6 bytes, and munged takes 32 to 1024" in run.words
    for node in queue.nodes:
        assert (
            f"Slurm is not set up on {node}: The controller {queue.controller} was not set up in this run" in run.words
        )
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]


def test_45_the_key_is_replaced_as_documented_and_a_job_goes_on(queue, tmp_path):
    key = "base64 -w0 /etc/munge/munge.key"
    before = queue.on(queue.controller, key)
    place = "/tmp/replaced"
    queue.on(queue.nodes[0], f"rm -f {place}")
    job = queue.run(
        f"sbatch --parsable --nodelist={queue.nodes[0]} --gres=gpu:1 --wrap='sleep 60; echo done > {place}'"
    )
    queue.until(f"squeue --noheader --jobs={job} --format=%T", "RUNNING")
    queue.on(queue.controller, "rm /etc/munge/munge.key")
    changes, said = queue.play(ON, "--diff", "-vvv")
    assert all(changes.values())
    after = {queue.on(host, key) for host in queue.hosts}
    assert len(after) == 1 and before not in after
    assert not any(one in said for one in after)
    for node in queue.nodes:
        assert not failed(queue.checks(tmp_path, node))
    assert queue.run("srun --nodes=3 hostname | sort").split() == sorted(queue.nodes)
    queue.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "COMPLETED", 120)
    assert queue.on(queue.nodes[0], f"cat {place}") == "done\n"
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]


def test_48_slurmd_that_starts_before_the_device_files_takes_jobs_once_they_exist(queue, tmp_path):
    second = queue.nodes[1]
    queue.on(second, "systemctl stop slurmd; rm /dev/nvidia[0-3]; systemctl start --no-block slurmd")
    end = time.monotonic() + 120
    while int(queue.on(second, "systemctl show --value --property=NRestarts slurmd")) < 1:
        assert time.monotonic() < end, queue.on(second, "journalctl -u slurmd -n 30")
        time.sleep(1)
    started = "grep -c 'slurmd started' /var/log/slurm/slurmd.log"
    before = queue.on(second, started, check=False)
    queue.on(second, DEVICES)
    end = time.monotonic() + 90
    while queue.on(second, started, check=False) == before:
        assert time.monotonic() < end, queue.on(second, "journalctl -u slurmd -n 30")
        time.sleep(1)
    queue.until_state(second, *IDLE)
    assert not failed(queue.checks(tmp_path, second))
    devices = queue.run(f"srun --nodelist={second} --gres=gpu:4 sh -c 'echo $CUDA_VISIBLE_DEVICES'")
    assert devices == "0,1,2,3"


def test_50_the_controller_stops_and_comes_back_and_jobs_go_on(queue, tmp_path):
    job = queue.run("sbatch --parsable --gres=gpu:1 --wrap='sleep 40; echo done > /tmp/finished'")
    queue.until(f"squeue --noheader --jobs={job} --format=%T", "RUNNING")
    queue.on(queue.controller, "systemctl stop slurmctld")
    found = failed(queue.checks(tmp_path, queue.nodes[0]))
    assert set(found) == {"slurm_controller"} and "slurmctld" in found["slurm_controller"]
    # One key of each kind: that slurmctld reads again, and that all take over as they start.
    changed = {**ON, "slurm_extra_lines": ["PriorityWeightAge=2000"], "slurm_features": ["scratch"]}
    changes, _said = queue.play(changed)
    assert all(changes.values())
    assert queue.run("scontrol show config | grep PriorityWeightAge").split() == ["PriorityWeightAge", "=", "2000"]
    again, said = queue.play(changed)
    assert set(again.values()) == {0}, said[-6000:]
    queue.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "COMPLETED", 90)
    queue.play(ON)
    assert not failed(queue.checks(tmp_path, queue.nodes[0]))


SAVED = "ls /var/backups/slurm/slurm_acct_db-*.sql.gz 2>/dev/null"


def test_55_the_accounting_is_saved_before_another_version_starts_on_it_and_can_be_taken_back(queue):
    jobs = "sacct --allusers --allocations --noheader --parsable2 --format=JobID,State,ElapsedRaw,AllocTRES --starttime=now-6hours"
    held = queue.run(jobs)
    assert "gres/gpu=" in held
    assert queue.on(queue.controller, SAVED, check=False) == ""
    # As after an upgrade, with a database that is not there yet: slurmdbd waits for its backup.
    queue.on(queue.controller, "echo 20.11.4 > /var/lib/allreduce/slurmdbd_version; systemctl stop mariadb")
    queue.on(queue.controller, "systemctl restart slurmdbd", check=False)
    assert queue.on(queue.controller, f"systemctl is-active slurmdbd; {SAVED}", check=False).strip() in (
        "activating",
        "failed",
    )
    queue.on(queue.controller, "systemctl start mariadb")
    queue.until("systemctl show --value --property=SubState slurmdbd", "running")
    queue.until(jobs, held)
    (path,) = queue.on(queue.controller, SAVED).split()
    assert "/slurm_acct_db-20.11.4-" in path
    assert queue.on(queue.controller, f"stat -c '%a %U' {path}") == "600 root\n"
    queue.on(queue.controller, "systemctl restart slurmdbd")
    assert queue.on(queue.controller, SAVED).split() == [path]
    # As docs/slurm.md takes it back.
    queue.on(queue.controller, documented_restore().replace("FILE", path))
    queue.until("systemctl show --value --property=SubState slurmdbd", "running")
    queue.until(jobs, held)
    assert queue.run("srun --mem=1G hostname") in queue.nodes
    again, said = queue.play(ON)
    assert set(again.values()) == {0}, said[-6000:]


def documented_restore():
    """The commands that a user copies."""
    page = (CHECKOUT / "docs" / "slurm.md").read_text(encoding="utf-8")
    first = "$ systemctl stop slurmctld slurmdbd"
    lines = (first + page.partition(first)[2].partition("```")[0]).splitlines()
    return " && ".join(line.removeprefix("$ ") for line in lines)


def test_60_a_drained_node_is_named_with_its_reason(queue, tmp_path):
    second = queue.nodes[1]
    queue.on(
        queue.controller, f"scontrol update NodeName={second} State=DRAIN Reason=\"fan 3 $(printf '\\033[31m')broken\""
    )
    found = failed(queue.checks(tmp_path, second))
    assert (
        set(found) == {"slurm_state"}
        and "drained (fan 3 " in found["slurm_state"]
        and "\033" not in found["slurm_state"]
    )
    queue.run(f"scontrol update NodeName={second} State=RESUME")
    assert not failed(queue.checks(tmp_path, second))


def test_61_a_run_is_a_job_of_the_training_user_on_all_nodes_with_all_gpus(trained):
    status, said, result = trained.trained("slurm", train_args="--epochs 2")
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"], result["nodes"]) == ("succeeded", 3, trained.hosts)
    assert result["metrics"]["loss_last"] < result["metrics"]["loss_first"]
    assert set(trained.logs(result, "torchrun.log")) == set(trained.hosts)
    ((state, user, given),) = trained.accounted(result["job"]["id"])
    assert (state, user, result["job"]["restarts"]) == ("COMPLETED", "trainer", 0)
    assert "gres/gpu=12" in given and "node=3" in given
    trained.is_empty()


def test_62_a_rank_that_fails_is_named_as_everywhere(trained, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("import os, sys, time\nos.environ['RANK'] == '1' and sys.exit('no data here')\ntime.sleep(600)\n")
    status, said, result = trained.trained("slurm", train_script=str(script))
    assert status != 0
    failure = result["failure"]
    assert (failure["rank"], failure["exit_code"], failure["tail"]) == (1, 1, ["no data here"]), result
    assert trained.accounted(result["job"]["id"])[0][0] == "FAILED"
    trained.is_empty(60)


def test_63_a_run_whose_job_is_requeued_continues_from_its_checkpoint(trained):
    process = trained.train("slurm", train_args=TRAINING)
    trained.half_way(process)
    job = trained.queue.run("squeue --noheader --user=trainer --format=%i")
    trained.queue.run(f"scontrol requeue {job}")
    status, said, result = trained.ended(process)
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"], result["job"]) == ("succeeded", 3, {"id": int(job), "restarts": 1})
    assert result["metrics"]["resumed_from"], result["metrics"]
    assert f"job {job} is pending (BeginTime)" in said
    trained.is_empty()


def test_64_an_interrupted_run_leaves_no_job(trained):
    process = trained.train("slurm", train_args=TRAINING)
    trained.half_way(process)
    job = trained.queue.run("squeue --noheader --user=trainer --format=%i")
    os.killpg(process.pid, signal.SIGINT)
    status, _said, _result = trained.ended(process)
    assert status != 0
    trained.queue.until("squeue --noheader --user=trainer", "")
    assert trained.accounted(job)[0][0].startswith("CANCELLED")
    trained.is_empty(60)


def test_65_what_keeps_a_job_from_running_is_said_with_slurms_reason(trained):
    queue = trained.queue
    other = queue.run("sbatch --parsable --nodes=3 --exclusive --wrap='srun sleep 300'")
    queue.until(f"squeue --noheader --jobs={other} --format=%T", "RUNNING")
    _status, said, result = trained.trained("slurm", train_start_timeout=15)
    assert re.search(r"is still pending after 15 s \(\w+\); set train_start_timeout", result["failure"]["reason"]), (
        said[-3000:]
    )
    queue.until("squeue --noheader --user=trainer", "")
    queue.run(f"scancel {other}")
    second = queue.nodes[1]
    queue.on(queue.controller, f"scontrol update NodeName={second} State=DRAIN Reason='fan 3 broken'")
    _status, _said, result = trained.trained("slurm")
    assert result["failure"]["reason"].startswith(f"Slurm has {second} as drain")
    assert "(fan 3 broken)" in result["failure"]["reason"]
    queue.run(f"scontrol update NodeName={second} State=RESUME")
    queue.on(queue.controller, "systemctl stop slurmctld")
    _status, _said, result = trained.trained("slurm")
    assert result["failure"]["reason"].startswith("Slurm's controller does not answer this node: ")
    queue.on(queue.controller, "systemctl start slurmctld")
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    trained.is_empty()


def test_66_a_job_whose_time_is_up_saves_and_begins_again(trained):
    # The signal comes two to three minutes before the end.
    limit = {"SBATCH_TIMELIMIT": "4"}
    endless = TRAINING.replace("--epochs 40", "--epochs 100000")
    _status, said, result = trained.trained("slurm", train_args=endless, train_variables=limit)
    assert re.fullmatch(r"Slurm's job \d+ reached its time limit \(00:04:00\)", result["failure"]["reason"]), said[
        -3000:
    ]
    shown = f"cat /var/lib/allreduce/runs/{result['run_id']}/logs/rank*.out"
    assert any("stopped by SIGTERM; the checkpoint is at " in trained.on(host, shown) for host in trained.hosts)
    trained.is_empty(60)


def test_67_a_job_on_each_node_sees_its_gpus_where_that_is_asked_for(trained, tmp_path):
    for node in trained.hosts:
        assert trained.queue.checks(tmp_path, node, verify_slurm_job=True)["slurm_job"][0] == "passed"
    assert "slurm_job" not in trained.queue.checks(tmp_path, trained.hosts[0])


# A process that leaves its job behind and has the device files of the job's GPUs open. They have no driver, so it only looks at them.
LEAVES = """
import os, sys, time
if os.fork() or os.setsid() and os.fork():
    time.sleep(1)
    sys.exit()
for number in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
    os.open("/dev/nvidia" + number, os.O_PATH)
with open(sys.argv[1], "w") as stream:
    stream.write(str(os.getpid()))
time.sleep(600)
"""


def test_70_the_programs_of_its_health_are_installed_named_and_compared(queue, tmp_path):
    changes, _said = queue.play(WATCHED)
    assert all(changes.values())
    again, said = queue.play(WATCHED)
    assert set(again.values()) == {0}, said[-6000:]
    config = queue.run("scontrol show config")
    for key in ("HealthCheckProgram", "Prolog", "Epilog"):
        assert re.search(rf"(?m)^{key}(\[0\])?\s+= /opt/allreduce/lib/slurm/", config), key
    for node in queue.nodes:
        queue.judge(node)
    assert not failed(queue.checks(tmp_path, queue.nodes[1], WATCHED))
    queue.on(queue.nodes[1], "chmod a-x /opt/allreduce/lib/slurm/epilog")
    assert set(failed(queue.checks(tmp_path, queue.nodes[1], WATCHED))) == {"slurm_health"}
    changes, _said = queue.play(WATCHED)
    assert changes == {**dict.fromkeys(queue.hosts, 0), queue.nodes[1]: 1}
    assert not failed(queue.checks(tmp_path, queue.nodes[1], WATCHED))


def test_71_a_fault_drains_the_right_node_for_the_right_reason_and_it_alone(queue):
    second = queue.nodes[1]
    job = queue.run(f"sbatch --parsable --nodelist={second} --gres=gpu:1 --mem=1G --wrap='sleep 20'")
    queue.until(f"squeue --noheader --jobs={job} --format=%T", "RUNNING")
    queue.judge(second, FAULT)
    assert queue.states() == {**dict.fromkeys(queue.nodes, IDLE), second: ("draining", REASON)}
    queue.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "COMPLETED")
    assert queue.run("srun --nodes=2 hostname | sort").split() == [queue.nodes[0], queue.nodes[2]]
    # Repaired, it returns; HealthCheckProgram alone would bring it back within a minute, too.
    queue.judge(second)
    queue.until_state(second, *IDLE)


def test_72_slurm_s_own_run_drains_and_gives_back_where_no_hook_does(queue):
    second = queue.nodes[1]
    queue.on(second, "sed -i 's|/opt/allreduce/lib/slurm/check||' /etc/allreduce/health.json")
    queue.judge(second, FAULT)
    assert queue.states()[second] == IDLE
    queue.until_state(second, "drained", REASON)
    queue.judge(second)
    queue.until_state(second, *IDLE)
    # In shadow mode nothing happens to it.
    queue.on(second, 'sed -i \'s|"act"|"shadow"|\' /etc/allreduce/health.json')
    queue.judge(second, FAULT)
    queue.on(second, "/opt/allreduce/lib/slurm/check")
    assert queue.states() == dict.fromkeys(queue.nodes, IDLE)
    assert f"in shadow mode, would be drained: {REASON}" in queue.on(second, "journalctl -n 50")
    queue.say(second)
    queue.play(WATCHED)
    queue.judge(second)


def test_73_what_somebody_else_drained_stays_drained(queue):
    second = queue.nodes[1]
    queue.run(f"scontrol update NodeName={second} State=DRAIN Reason='fan 3'")
    for lines in ([FAULT], []):
        queue.judge(second, *lines)
        queue.on(second, "/opt/allreduce/lib/slurm/check")
        assert queue.states()[second] == ("drained", "fan 3")
    queue.run(f"scontrol update NodeName={second} State=RESUME")


def test_74_the_prolog_refuses_a_node_that_was_resumed_by_hand_and_the_job_runs_elsewhere(queue):
    first, second, third = queue.nodes
    queue.judge(second, FAULT)
    queue.until_state(second, "drained", REASON)
    queue.run(f"scontrol update NodeName={first},{third} State=DRAIN Reason=test")
    job = queue.run("sbatch --parsable --gres=gpu:1 --mem=1G --wrap='hostname > /tmp/where'")
    queue.run(f"scontrol update NodeName={second} State=RESUME")
    queue.until_state(second, "drained", REASON)
    assert "is refused: " in queue.on(second, "journalctl -t allreduce-slurm-prolog -n 20")
    queue.run(f"scontrol update NodeName={first} State=RESUME")
    queue.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "COMPLETED", 180)
    assert queue.on(first, "cat /tmp/where").strip() == first
    queue.run(f"scontrol update NodeName={third} State=RESUME")
    queue.judge(second)
    queue.until_state(second, *IDLE)


def test_75_what_a_job_leaves_on_its_gpus_is_ended_and_other_jobs_of_its_user_go_on(queue):
    second = queue.nodes[1]
    for host in queue.hosts:
        queue.on(host, "id ada >/dev/null 2>&1 || useradd --uid 4321 --create-home ada")
    queue.on(second, f"cat > /tmp/leaves.py <<'END'\n{LEAVES}\nEND")
    asked = f"runuser -u ada -- sbatch --parsable --chdir=/tmp --nodelist={second} --gres=gpu:1 --mem=1G"
    other = queue.run(f"{asked} --wrap='sleep 40'")
    job = queue.run(f"{asked} --wrap='python3 /tmp/leaves.py /tmp/left; sleep 2'")
    accounted = "sacct --allocations --noheader --parsable2 --format=State --jobs="
    queue.until(f"{accounted}{job}", "COMPLETED", 90)
    pid = queue.on(second, "cat /tmp/left").strip()
    end = time.monotonic() + 30
    while queue.on(second, f"ls -d /proc/{pid}", check=False):
        assert time.monotonic() < end, queue.on(second, "journalctl -n 60")
        time.sleep(1)
    queue.until(f"{accounted}{other}", "COMPLETED", 90)
    assert queue.states() == dict.fromkeys(queue.nodes, IDLE)
    assert f"job {job} of user 4321 left processes on its GPUs: {pid}" in queue.on(
        second, "journalctl -t allreduce-slurm-epilog -n 20"
    )


def test_76_memory_that_stays_in_use_drains_the_node_until_it_is_free(queue):
    second = queue.nodes[1]
    queue.say(second, *(f"{gpu} memory_used_mib 9000 0" for gpu in range(4)))
    job = queue.run(f"sbatch --parsable --nodelist={second} --gres=gpu:4 --mem=1G --wrap=true")
    words = "memory in use without a process: nvidia0, nvidia1, nvidia2, nvidia3"
    queue.until_state(second, "drained", f"allreduce: epilog of job {job}: {words}", seconds=150)
    queue.judge(second)
    queue.until_state(second, *IDLE)


# Nodes that are only names: their programs run on a real node, each with a state and a verdict of its own.
NAMES = [f"name{number}" for number in range(1, 8)]


def test_77_ten_nodes_that_break_at_once_trip_the_breaker(queue):
    """Three real nodes with a fault each, and seven names with prepared verdicts, against the real slurmctld."""
    first, *others = queue.nodes
    line = f"NodeName={','.join(NAMES)} NodeAddr=192.0.2.1 RealMemory=1000"
    queue.on(queue.controller, f"cp /etc/slurm/slurm.conf /tmp/before && echo '{line}' >> /etc/slurm/slurm.conf")
    queue.on(queue.controller, "systemctl restart slurmctld")
    try:
        queue.until("sh -c 'sinfo --Node --noheader | wc -l'", "10", 60)
        for node in queue.nodes:
            queue.say(node, FAULT)
        sick = '{"findings": [{"check": "xid", "subject": "GPU0", "severity": "failed", "action_class": "reboot"}]'
        begin = (
            f"for name in {' '.join(NAMES)}; do mkdir -p /tmp/names/$name; "
            f'printf \'%s, "verdict": "failed", "timestamp": %s, "duration_seconds": 0}}\' \'{sick}\' "$(date +%s)" > /tmp/names/$name/health.json; '
            "unshare -m sh -c 'mount --bind /tmp/names/'$name' /var/lib/allreduce/health; "
            "exec python3 -I -B /opt/allreduce/lib/slurm check '$name > /tmp/names/$name.log 2>&1 & done; "
            "systemctl start allreduce-health; wait"
        )
        started = [queue.start(node, "sleep 0.5; systemctl start allreduce-health") for node in others]
        queue.on(first, begin)
        for one in started:
            one.wait()
        drained = [name for name, (_state, reason) in queue.states().items() if reason.startswith("allreduce:")]
        assert len(drained) == 1, queue.states()
        said = "".join(queue.on(node, "journalctl -n 200") for node in queue.nodes)
        assert said.count("too many nodes were drained within ten minutes; a person has to look") >= 9
    finally:
        queue.on(queue.controller, "cp /tmp/before /etc/slurm/slurm.conf; systemctl restart slurmctld")
    for node in queue.nodes:
        queue.judge(node)
    for node in queue.nodes:
        queue.until_state(node, *IDLE)


def test_78_a_node_that_was_drained_keeps_its_reason_when_the_programs_go(queue, tmp_path):
    second = queue.nodes[1]
    queue.judge(second, FAULT)
    queue.until_state(second, "drained", REASON)
    queue.play({**ON, "health_state": "absent"})
    assert queue.states()[second] == ("drained", REASON)
    assert not queue.on(second, "ls -d /opt/allreduce/lib/slurm", check=False)
    assert "/opt/allreduce" not in queue.run("scontrol show config")
    queue.run(f"scontrol update NodeName={second} State=RESUME")
    assert not failed(queue.checks(tmp_path, second))


MONITORING = "tests/scenarios/monitoring.yml"
TEXTFILES, PASSWORD = "/var/lib/prometheus/node-exporter", "correct horse battery"
SCRAPED = {
    **WATCHED, "health_textfile_directory": TEXTFILES, "monitoring_state": "present", "monitoring_password": PASSWORD,
    "monitoring_scrape_interval": "10s", "monitoring_dcgm_exporter": False,
}  # fmt: skip
# What Prometheus answers to an expression.
ASK = """
import base64, sys, urllib.parse, urllib.request
where, words, password = sys.argv[1:]
asked = urllib.request.Request("http://%s:9090/api/v1/query?query=%s" % (where, urllib.parse.quote(words)))
asked.add_header("Authorization", "Basic " + base64.b64encode(b"allreduce:" + password.encode()).decode())
print(urllib.request.urlopen(asked, timeout=10).read().decode())
"""


def documented_join():
    """The expression that a user copies, in one line."""
    page = (CHECKOUT / "docs" / "slurm.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"(?m)^avg by \(slurm_job.*$", page)
    return found


def test_79_a_job_is_joined_with_what_its_gpus_do_in_prometheus_and_goes_with_its_end(queue):
    second = queue.nodes[1]
    queue.play(SCRAPED, playbook=MONITORING)
    queue.play(SCRAPED)
    for host in queue.hosts:
        queue.on(host, "id ada >/dev/null 2>&1 || useradd --uid 4321 --create-home ada")
    queue.on(queue.controller, f"cat > /root/ask.py <<'END'\n{ASK}END")
    address = queue.on(queue.controller, "hostname --all-ip-addresses").split()[0]

    def joined():
        said = queue.on(queue.controller, f"python3 /root/ask.py {address} '{documented_join()}' '{PASSWORD}'")
        return {
            (one["metric"]["slurm_job"], one["metric"]["user"]): float(one["value"][1])
            for one in json.loads(said)["data"]["result"]
        }

    def until(look, expected, seconds=60):
        end = time.monotonic() + seconds
        while (found := look()) != expected:
            assert time.monotonic() < end, (found, expected)
            time.sleep(2)

    queue.judge(second)
    asked = f"runuser -u ada -- sbatch --parsable --chdir=/tmp --nodelist={second} --mem=1G"
    job = queue.run(f"{asked} --gres=gpu:2 --wrap='sleep 600'")
    other = queue.run(f"{asked} --wrap='sleep 600'")
    queue.until(f"squeue --noheader --jobs={job},{other} --format=%T", "RUNNING\nRUNNING")
    look = f"grep '^allreduce_slurm_job_info' {TEXTFILES}/allreduce_slurm.prom"
    written = queue.on(second, look)
    form = rf'allreduce_slurm_job_info{{slurm_job="{job}",user="ada",device="nvidia(\d)",UUID="(GPU-[0-9a-f-]+)"}} 1'
    found = [re.fullmatch(form, line) for line in written.splitlines()]
    assert len(found) == 2 and all(found) and len({one.group(2) for one in found}) == 2, written
    until(lambda: set(joined()), {(job, "ada")})
    queue.run(f"scancel {job}")
    queue.until("squeue --noheader --user=ada --states=COMPLETING,RUNNING --format=%i", other)
    until(lambda: queue.on(second, look, check=False), "")
    until(joined, {})
    queue.run(f"scancel {other}")
    queue.play({**SCRAPED, "monitoring_state": "absent", "health_state": "absent"}, playbook=MONITORING)
    queue.play({**SCRAPED, "health_state": "absent"})
    assert not queue.on(second, f"ls {TEXTFILES}/allreduce_slurm.prom", check=False)


def test_80_removed_nothing_of_it_is_left_but_the_accounting(queue):
    queue.play(OFF)
    assert {host: queue.on(host, OURS, check=False) for host in queue.hosts} == dict.fromkeys(queue.hosts, "")
    assert queue.on(queue.controller, "ls -d /var/lib/mysql/slurm_acct_db /var/spool/slurmctld").count("\n") == 2
    again, said = queue.play(OFF)
    assert set(again.values()) == {0}, said[-6000:]


def test_85_what_was_kept_is_taken_again_and_goes_where_that_is_asked_for(queue):
    queue.play(ON)
    queue.until("sinfo --noheader --format='%P %D %T'", ALL_IDLE)
    assert "gres/gpu=2" in queue.run(
        "sacct --allocations --noheader --parsable2 --format=AllocTRES --starttime=now-1hour"
    )
    queue.play({**OFF, "slurm_delete_accounting": True})
    assert {host: queue.on(host, OURS, check=False) for host in queue.hosts} == dict.fromkeys(queue.hosts, "")
    assert not queue.on(queue.controller, "ls -d /var/lib/mysql/slurm_acct_db /var/spool/slurmctld", check=False)
