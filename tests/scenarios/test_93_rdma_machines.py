# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two machines with soft RoCE: real verbs between them, and what role rdma, facts, verify and health make of such an adapter.

Soft RoCE has no priority flow control, no way to a GPU's memory and no InfiniBand subnet: of these nothing is shown here. Under
emulation its speed says nothing either.
"""

import json
import re

import pytest
from cluster import KEEP
from machine_hosts import Machines

pytestmark = pytest.mark.lab

ADAPTER = "rxe0"
PLAYBOOK = "tests/scenarios/rdma.yml"
PRESENT = {"rdma_state": "present", "rdma_names": "kernel"}
PYTORCH = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu", "horovod": "none"}, "nvidia_driver_without_gpu": False,
}  # fmt: skip
# As the driver of an adapter does when it loads; a link of soft RoCE is gone after a boot.
PLUG = f"""
modprobe rdma_rxe
rdma link show {ADAPTER}/1 > /dev/null 2>&1 ||
  rdma link add {ADAPTER} type rxe netdev $(ip -o route get 192.0.2.1 | sed 's/.* dev \\([^ ]*\\).*/\\1/')
"""
SERVER = "systemd-run --quiet --collect --unit perftest --property=LimitMEMLOCK=infinity {program} -F -d rxe0 {options}"
MEMLOCK = ("su ansible -l -c 'ulimit -l'", "systemd-run --quiet --pipe --wait sh -c 'ulimit -l'")


class Pair(Machines):
    """The two machines; each has its adapter after a boot."""

    def plug(self):
        for host in self.hosts:
            self.on(host, PLUG)

    def perftest(self, program, *options):
        """The rows of numbers that the client of a perftest program prints, as the reference systems run it."""
        server, client = self.hosts
        words = " ".join(options)
        self.on(server, "systemctl stop perftest 2>/dev/null; true")
        self.on(server, SERVER.format(program=program, options=words))
        self.on(
            server, "for i in $(seq 300); do ss -Hltn 'sport = :18515' | grep -q . && exit; sleep 0.2; done; exit 1"
        )
        printed = self.on(client, f"timeout 120 {program} -F -d {ADAPTER} {words} {self.machine(server).address}")
        return [line.split() for line in printed.splitlines() if re.fullmatch(r"[\d.\s]+", line) and line.strip()]


@pytest.fixture(scope="module")
def pair():
    made = Pair("verbs", 2, "--memory", "3072")
    made.plug()
    yield made
    if not KEEP:
        made.down()


def set_up(pair, **variables):
    """The recap of both machines."""
    run = pair.play(PLAYBOOK, "-e", json.dumps({**PRESENT, **variables}))
    assert run.status == 0, run.output[-6000:]
    return run, {host: run.recap[host]["changed"] for host in pair.hosts}


def test_10_the_role_sets_up_nodes_with_such_an_adapter_once(pair):
    assert all(set_up(pair)[1].values())
    assert set_up(pair)[1] == dict.fromkeys(pair.hosts, 0)


def test_20_facts_name_port_interface_and_the_gid_that_nccl_needs(pair):
    for host in pair.hosts:
        facts = pair.measured(host, "rdma_facts")["ansible_facts"]["gpu_rdma"]
        [adapter] = facts["adapters"]
        [port] = adapter["ports"]
        interface = pair.on(host, f"cat /sys/class/infiniband/{ADAPTER}/parent").strip()
        assert (adapter["name"], adapter["driver"], adapter["pci_bus_id"], adapter["virtual"]) == (
            ADAPTER,
            None,
            None,
            False,
        )
        assert (port["state"], port["link_layer"], port["netdevs"]) == ("ACTIVE", "Ethernet", [interface])
        shown = pair.on(host, f"cat /sys/class/infiniband/{ADAPTER}/ports/1/gids/{port['rocev2_gid_index']}").strip()
        octets = "".join(f"{int(one):02x}" for one in pair.machine(host).address.split("."))
        assert shown.replace(":", "").endswith("ffff" + octets)


def test_30_verbs_carry_what_the_reference_systems_measure(pair):
    """ib_write_bw and ib_read_bw: average bandwidth is the fourth column; ib_read_lat: the typical time is the fifth."""
    for program, column in (("ib_write_bw", 3), ("ib_read_bw", 3), ("ib_read_lat", 4)):
        rows = pair.perftest(program, "-n 100", "-s 4096")
        assert len(rows) == 1 and float(rows[0][column]) > 0, (program, rows)


def test_40_memory_may_be_locked_in_sessions_and_units(pair):
    for host in pair.hosts:
        assert pair.on(host, MEMLOCK[0]).strip() != "unlimited"
    run = pair.play(
        "tests/scenarios/tuning.yml",
        "-e",
        json.dumps({"tuning_state": "present", "tuning_transport": "rdma", **PRESENT}),
    )
    assert run.status == 0, run.output[-6000:]
    for host in pair.hosts:
        assert [pair.on(host, one).strip() for one in MEMLOCK] == ["unlimited"] * 2


def measured_rails(pair, place):
    """{(source, target): rail} of one verification that measures bandwidth."""
    given = {
        **PRESENT,
        "report_directory": str(place),
        "verify_collectives": False,
        "verify_network_bandwidth": True,
        "verify_network_seconds": 6,
    }
    run = pair.play("playbooks/verify.yml", "-e", json.dumps(given))
    document = json.loads((place / "verify.json").read_text(encoding="utf-8"))
    first, second = pair.hosts
    rails = {(one["source"], one["target"]): one for one in document["network"]["rails"]}
    assert rails.keys() == {(first, second), (second, first)}, run.output[-6000:]
    return rails


def test_50_verify_measures_the_rail_with_verbs(pair, tmp_path):
    """perftest samples the clock for a fifth of a second; an emulator that has to wait for a processor then makes it give 0: asked again."""
    run = pair.play("tests/scenarios/network.yml")
    assert run.status == 0, run.output[-6000:]
    figures = {}
    for _attempt in range(4):
        rails = measured_rails(pair, tmp_path)
        assert {one["rail"] for one in rails.values()} == {ADAPTER}
        assert {one.get("code") for one in rails.values()} <= {None, "no_report"}, rails
        figures.update({way: one["bits_per_second"] for way, one in rails.items() if "code" not in one})
        if len(figures) == 2:
            break
    assert len(figures) == 2 and all(figure > 0 for figure in figures.values()), (figures, rails)


def test_60_a_fabric_that_the_device_does_not_know_is_refused_with_a_sentence(pair):
    run = pair.play(PLAYBOOK, "-e", json.dumps({**PRESENT, "rdma_roce": {"dscp": 26, "priority": 3, "pfc": [3]}}))
    assert run.status == 2
    assert "has no data centre bridging that iproute2's dcb can set" in run.words.replace("''", "'"), run.output[-6000:]


def test_65_pytorch_trains_over_the_same_link(pair, tmp_path):
    roles = "base,python_env,frameworks,cluster_ssh"
    stack = {**PYTORCH, "stack_lock": str(tmp_path / "stack.lock.yml")}  # of this test alone
    run = pair.play("playbooks/site.yml", "--tags", roles, "-e", json.dumps({**PRESENT, **stack}))
    assert run.status == 0, run.output[-6000:]
    given = {
        **stack, "train_args": "--epochs 1 --samples 256 --batch-size 32 --width 4", "train_start_timeout": 900,
        "report_directory": str(tmp_path),
    }  # fmt: skip
    run = pair.play("playbooks/train.yml", "-e", json.dumps(given))
    assert run.status == 0, run.output[-6000:]
    [place] = (tmp_path / "training").iterdir()
    result = json.loads((place / "result.json").read_text(encoding="utf-8"))
    assert (result["status"], result["world_size"], result["nodes"]) == ("succeeded", 2, pair.hosts)
    assert "2 ranks on cpu with gloo" in (place / "logs" / pair.hosts[0] / "rank0.out").read_text(encoding="utf-8")


def test_70_after_a_boot_and_a_removal(pair):
    host = pair.hosts[0]
    pair.reboot(host)
    pair.plug()
    assert set_up(pair)[1] == dict.fromkeys(pair.hosts, 0)
    assert any(set_up(pair, rdma_state="absent")[1].values())
    assert set_up(pair, rdma_state="absent")[1] == dict.fromkeys(pair.hosts, 0)
