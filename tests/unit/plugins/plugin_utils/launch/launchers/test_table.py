# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import ipaddress
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Job, Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers import mpirun, slurm
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.table import LAUNCHERS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES, other_addresses
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all
from hypothesis import given
from hypothesis import strategies as st

ADDRESSES = {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2", "gpu-3": "10.0.0.3"}
RENDEZVOUS = ["--rdzv-backend=c10d", "--rdzv-id=r1", "--rdzv-endpoint=10.0.0.1:29500"]
LOG = "--log-dir=/runs/r1/logs/torchrun"
SHARED = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
MEETING = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
NETWORK = "10.0.0.0/30"
MPIRUN = ["--map-by", "slot", "--bind-to", "none", "--wdir", "/runs/r1/work"]
MPIRUN += ["--mca", "btl_tcp_if_include", NETWORK, "--mca", "oob_tcp_if_include", NETWORK]


def job(node="gpu-1", count=2, addresses=None, **more):
    place = Place(node, tuple(ADDRESSES)[:count], addresses or ADDRESSES, 29500)
    return Job(place, "r1", "/runs/r1", **more)


@pytest.mark.parametrize(
    ("name", "job", "arguments", "variables"),
    [
        (
            "torchrun",
            job(),
            ["--nnodes=2", "--rdzv-conf=is_host=1", *RENDEZVOUS, "--local-addr=10.0.0.1", "--max-restarts=0", LOG],
            {},
        ),
        (
            "torchrun",
            job("gpu-2", max_restarts=1),
            ["--nnodes=2", "--rdzv-conf=is_host=0", *RENDEZVOUS, "--local-addr=10.0.0.2", "--max-restarts=1", LOG],
            SHARED,
        ),
        (
            "elastic",
            job("gpu-2", 3, max_restarts=3, min_nodes=2),
            [
                "--nnodes=2:3",
                "--rdzv-conf=is_host=0,last_call_timeout=15",
                *RENDEZVOUS,
                "--local-addr=10.0.0.2",
                "--max-restarts=3",
                LOG,
            ],
            SHARED,
        ),
        (
            "elastic",
            job(count=1),
            [
                "--nnodes=1:1",
                "--rdzv-conf=is_host=1,last_call_timeout=15",
                *RENDEZVOUS,
                "--local-addr=10.0.0.1",
                "--max-restarts=0",
                LOG,
            ],
            SHARED,
        ),
        (
            "slurm",
            job("gpu-2"),
            ["--nnodes=2", "--rdzv-conf=is_host=0", *RENDEZVOUS, "--local-addr=10.0.0.2", "--max-restarts=0", LOG],
            {},
        ),
        ("mpirun", job(), MPIRUN, MEETING),
        ("mpirun", job("gpu-2"), MPIRUN, MEETING),
        ("horovodrun", job("gpu-2"), ["--gloo", "--disable-cache", "--start-timeout", "300"], {}),
    ],
)
def test_what_a_launcher_is_told_on_a_node(name, job, arguments, variables):
    launcher = LAUNCHERS[name]
    assert (launcher.arguments(job), launcher.variables(job)) == (arguments, variables)


def test_horovodrun_takes_no_ipv6():
    with pytest.raises(ProblemError) as refused:
        LAUNCHERS["horovodrun"].arguments(job(addresses={"gpu-1": "10.0.0.1", "gpu-2": "fd00::2"}))
    assert describe_all(refused.value.problems) == (
        "The cluster address of gpu-2 is fd00::2, and horovodrun takes IPv4 only; set gpu_cluster_address to an IPv4 address, or "
        "train_launcher to torchrun."
    )


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_finds_its_files(name):
    assert all((NODE_FILES / file).is_file() for file in LAUNCHERS[name].files)


@pytest.mark.parametrize(
    ("addresses", "others", "networks"),
    [
        (["10.0.0.1"], [], ["10.0.0.1/32"]),
        (["10.0.0.4", "10.0.0.5"], [], ["10.0.0.4/31"]),
        (["10.0.1.9", "10.0.0.200", "10.0.1.1"], [], ["10.0.0.0/23"]),
        (["10.0.0.1", "fd00::1"], [], []),
        # Racks that are routed: docker0's 172.17.0.1 is between them, and other bridges in wider networks.
        (["172.16.10.11", "172.18.10.12"], [], ["172.16.10.11/32", "172.18.10.12/32"]),
        (["172.16.10.11", "172.16.10.12", "172.18.10.12"], [], ["172.16.10.8/29", "172.18.10.12/32"]),
        (["1.0.0.1", "129.0.0.1"], [], ["1.0.0.1/32", "129.0.0.1/32"]),
        (["192.168.121.1", "192.168.123.1"], [], ["192.168.121.1/32", "192.168.123.1/32"]),
        # CRI-O, nerdctl, and the first service of Kubernetes, which kube-proxy in IPVS mode puts on every node.
        (["10.84.0.9", "10.87.0.9"], [], ["10.84.0.9/32", "10.87.0.9/32"]),
        (["10.4.0.9", "10.4.0.2"], [], ["10.4.0.2/32", "10.4.0.9/32"]),
        (["10.96.0.9", "10.97.0.9"], [], ["10.96.0.9/32", "10.97.0.9/32"]),
        (["10.42.0.9", "10.43.0.9"], [], ["10.42.0.9/32", "10.43.0.9/32"]),
        # What facts tell, and an address of the cluster itself that a bridge could have.
        (["10.1.0.1", "10.1.3.1"], [], ["10.1.0.0/22"]),
        (["10.1.0.1", "10.1.3.1"], ["10.1.2.254"], ["10.1.0.1/32", "10.1.3.1/32"]),
        (["10.1.0.1", "10.1.0.2"], ["10.1.0.2", "10.1.2.254"], ["10.1.0.0/30"]),
        (["172.17.0.1", "172.17.0.2"], [], ["172.17.0.0/30"]),
        # A management network between two racks, whose addresses differ from node to node, and a second address in the same subnet.
        (
            ["10.4.0.11", "10.4.0.12", "10.6.0.11"],
            ["10.5.0.11", "10.5.0.12", "10.5.0.13"],
            ["10.4.0.8/29", "10.6.0.11/32"],
        ),
        (["10.1.0.1", "10.1.0.2"], ["10.1.0.3"], ["10.1.0.1/32", "10.1.0.2/32"]),
    ],
)
def test_open_mpi_is_kept_to_networks_without_the_other_addresses_of_nodes(addresses, others, networks):
    assert mpirun.networks(addresses, others) == networks


@given(
    addresses=st.lists(st.ip_addresses(v=4, network="172.16.0.0/12").map(str), min_size=1, max_size=8),
    others=st.lists(st.ip_addresses(v=4, network="172.16.0.0/12").map(str), max_size=4),
)
def test_the_networks_have_all_addresses_and_no_other(addresses, others):
    networks = [ipaddress.ip_network(one) for one in mpirun.networks(addresses, others)]
    assert all(sum(ipaddress.ip_address(one) in network for network in networks) == 1 for one in addresses)
    for one in {*others, *mpirun.BRIDGES} - set(addresses):
        assert not any(ipaddress.ip_address(one) in network for network in networks)


def test_the_other_addresses_that_facts_tell_of_nodes():
    def facts(*addresses):
        return {"ansible_facts": {"all_ipv4_addresses": list(addresses)}}

    hostvars = {
        "a": facts("10.0.0.1", "172.17.0.1", "172.17.0.1"),
        "b": facts("10.0.0.2", "172.17.0.1", "10.0.0.5"),
        "c": {},
        "d": facts("10.0.0.9"),
    }
    told = {"10.0.0.1", "10.0.0.2", "10.0.0.5", "172.17.0.1"}
    assert other_addresses(("a", "b", "c"), hostvars) == told
    # What a node says that somebody took over.
    for said in ("172.17.0.1", [{}, 7, None, "fd00::1", "10.0.0.0/8", "x"], {"10.0.0.9": 1}, 7):
        liar = {"ansible_facts": {"all_ipv4_addresses": said}}
        assert other_addresses(("a", "b", "e"), {**hostvars, "e": liar}) == told
    there = job(addresses={"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.9"})
    found = LAUNCHERS["mpirun"].arguments(
        replace(there, place=replace(there.place, others=frozenset({"10.0.0.1", "10.0.0.4"})))
    )
    assert found[-1] == "10.0.0.1/32,10.0.0.9/32"


class Counted(list):
    """Counts what is read of it."""

    read = 0

    def __getitem__(self, index):
        self.read += 1
        return super().__getitem__(index)


def test_a_node_that_tells_very_many_addresses_delays_nobody():
    addresses, others = list(range(0, 2000, 2)), Counted(range(1, 200_000, 2))
    assert len(list(mpirun._without(addresses, others))) == 1000
    # Two searches for each network and each that was divided, of 17 steps: not all of OTHERS for each.
    assert 0 < others.read < 1000 * 2 * 2 * 20


def test_without_a_network_open_mpi_chooses():
    there = job(addresses={"gpu-1": "fd00::1", "gpu-2": "fd00::2"})
    assert LAUNCHERS["mpirun"].arguments(there) == MPIRUN[:6]


@pytest.mark.parametrize(("node", "is_first"), [("gpu-1", True), ("gpu-2", False)])
def test_the_first_node_runs_horovodrun(node, is_first):
    more = LAUNCHERS["horovodrun"].more(job(node, cpus=("0-3",)))
    assert more == {"is_first": is_first, "addresses": ["10.0.0.1", "10.0.0.2"], "cpus": ["0-3"]}


@pytest.mark.parametrize(("node", "is_first"), [("gpu-1", True), ("gpu-2", False)])
def test_the_first_node_runs_mpirun_with_all_addresses(node, is_first):
    more = LAUNCHERS["mpirun"].more(job(node))
    assert more == {
        "is_first": is_first,
        "addresses": ["10.0.0.1", "10.0.0.2"],
        "programs": list(mpirun.PROGRAMS),
        "cpus": [],
    }


@pytest.mark.parametrize(("node", "is_first"), [("gpu-1", True), ("gpu-2", False)])
def test_the_first_node_submits_a_job_on_all(node, is_first):
    asked = job(node, max_restarts=3)
    place = replace(asked.place, scheduled=("g1", "g2"), gpus=4)
    assert LAUNCHERS["slurm"].more(replace(asked, place=place)) == {
        "is_first": is_first,
        "programs": list(slurm.PROGRAMS),
        "nodes": ["g1", "g2"],
        "gpus": 4,
        "job": "allreduce-r1",
        "restarts": 3,
    }
