# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traffic of iperf3 in a network namespace that got its classes and rules as a node does: from variables, facts and the module."""

import json
import subprocess
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import qos
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.qos_facts import read_qos
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.answer import SUBJECT
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import Space, lacking

from tests.support.subjects import decide_node

WHY_NOT = lacking("tc", "nft", "iperf3")
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(WHY_NOT), reason=str(WHY_NOT))]

TRAINING, BULK = 5201, 5301
LINK, GUARANTEE = 100e6, 80e6
# A frame of 1514 bytes carries 1448 of payload: headers of Ethernet, IP and TCP with time stamps.
PAYLOAD = 1448 / 1514
HOSTS = {
    "here": {
        "gpu_cluster_address": "10.99.0.1",
        "qos_state": "present",
        "qos_rate": "100mbit",
        "qos_ports": [TRAINING],
    },
    "there": {"gpu_cluster_address": "10.99.0.2"},
}
ADDRESSES = ("10.99.0.1", "10.99.0.2")


def put(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


def listening(space, name, port):
    until = time.monotonic() + 30
    while f":{port} " not in space.on(name, "ss", "-Hltn"):
        assert time.monotonic() < until, f"iperf3 does not listen on {port}"
        time.sleep(0.1)


@pytest.fixture
def space():
    made, servers = Space(), []
    for name in made.names:
        for port in (TRAINING, BULK):
            command = ["ip", "netns", "exec", name, "iperf3", "-s", "-p", str(port)]
            servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            listening(made, name, port)
    yield made
    for one in servers:
        one.kill()
        one.wait()
    made.close()


def shape(space, machine, **more):
    hosts = {**HOSTS, "here": {**HOSTS["here"], **more}}
    fact = read_qos(machine.tree, space.output, probe=True)
    found = decide_node(SUBJECT, "here", hosts, {"gpu_nodes": list(hosts)}, {"gpu_qos": fact})
    assert found["problems"] == []
    plan = {**found["plan"], "files": [one for one in found["plan"]["files"] if "content" in one]}
    assert qos.settle(machine, plan)["problems"] == []
    assert qos.settle(machine, plan)["changed"] is False


def client(space, sender, port, seconds, *more):
    """The command of an iperf3 client in one of the namespaces, towards the other."""
    words = ["ip", "netns", "exec", space.names[sender], "iperf3", "-J", "-c", ADDRESSES[1 - sender]]
    return [*words, "-p", str(port), "-t", str(seconds), "-O", "1", *more]


def send(space, sender, port):
    """Payload in bit/s that was received."""
    done = subprocess.run(client(space, sender, port, 5), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]


def best(measure, floor):
    """The first measurement that reaches the floor, or the best of five: a busy machine slows iperf3, never the reverse."""
    found = 0.0
    for _attempt in range(5):
        found = max(found, measure())
        if found >= floor:
            break
    return found


def beside_bulk(space, sender):
    bulk = subprocess.Popen(client(space, sender, BULK, 10, "-P", "4"), stdout=subprocess.DEVNULL)
    time.sleep(1)
    received = send(space, sender, TRAINING)
    assert bulk.wait() == 0
    return received


def test_without_classes_training_has_one_of_five_parts(space):
    """What the others are compared with."""
    space.on(
        space.names[0],
        *["tc", "qdisc", "add", "dev", "train0", "root", "tbf", "rate", "100mbit", "burst", "50kb", "latency", "20ms"],
    )
    assert beside_bulk(space, 0) <= 0.6 * GUARANTEE * PAYLOAD


@pytest.mark.parametrize("ingress", [False, True])
def test_training_keeps_its_share(space, tmp_path, ingress):
    before = space.state()
    machine = qos.Machine(FileTree(str(tmp_path)), put, space.run)
    if ingress and not read_qos(machine.tree, space.output, probe=True)["kernel"]["ifb"]:
        pytest.skip("this kernel has no ifb")
    shape(space, machine, qos_ingress=ingress)
    # The other namespace has no classes: what it sends is held back on arrival alone.
    sender = int(ingress)
    alone, guaranteed = 0.95 * LINK * PAYLOAD, 0.95 * GUARANTEE * PAYLOAD
    for port in (TRAINING, BULK):
        assert best(lambda port=port: send(space, sender, port), alone) >= alone
    assert guaranteed <= best(lambda: beside_bulk(space, sender), guaranteed) <= alone
    assert qos.settle(machine, dict(qos.NOTHING))["problems"] == []
    assert space.state() == before
