# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From variables and facts, as Ansible has them, to the plan and the checks."""

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import rdma_facts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError, parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.answer import SUBJECT, adapters
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import adapter, server

from tests.support.subjects import compared, decided

PRESENT = {"rdma_state": "present"}
FABRIC = {**PRESENT, "rdma_roce": {"dscp": 26, "priority": 3}}


def facts(place, *adapters, **more):
    """Facts of a recorded server, as the module returns them."""
    files = {**server(*adapters), "/usr/sbin/dcb": ""}
    measured = rdma_facts.read_rdma(tree(place, files), FileTree(str(place / "sys")))
    return {
        "gpu_rdma": measured,
        "gpu_node": {"gpus": [{"index": 0}], "driver": {"loaded_version": "550.54.15"}},
        **more,
    }


def test_a_node_without_adapters_is_left_alone(tmp_path):
    found = decided(SUBJECT, {**FABRIC, "rdma_names": "pci"}, facts(tmp_path))
    assert found == {
        "applies": False,
        "plan": {"files": [], "values": [], "modules": [], "ports": []},
        "problems": [],
        "notes": ["gpu-1 has no RDMA adapter and is left alone."],
        "packages": [],
    }
    measured = facts(tmp_path / "again")
    assert compared(SUBJECT, {**FABRIC, "rdma_ipoib": {"ib0": {"mtu": 2044}}}, measured) == []
    recorded = {**measured, "gpu_node_state": {"records": ["rdma"]}}
    assert [one.status.value for one in compared(SUBJECT, FABRIC, recorded)] == ["unwanted"]


@pytest.mark.parametrize(
    ("name", "gpudirect"), [("a100-ubuntu2204", True), ("a100-el8", True), ("multi-gpu-workstation", False)]
)
def test_a_reference_system(name, gpudirect, tmp_path):
    """Those with adapters in their texts; S3's driver and some of its GPUs cannot do GPUDirect."""
    path = Path(__file__).resolve().parents[6] / "inventories" / name / "hosts.yml"
    variables = yaml.safe_load(path.read_text("utf-8"))["gpu_nodes"]["vars"]
    measured = facts(tmp_path, adapter(0))
    found = decided(SUBJECT, variables, measured)
    assert found["applies"] and found["problems"] == []
    judged = [one.kind for one in compared(SUBJECT, variables, measured)]
    assert judged and ("gpudirect" in judged) is gpudirect


def test_a_fabric_that_is_declared(tmp_path):
    found = decided(SUBJECT, FABRIC, facts(tmp_path, adapter(0, "Ethernet")))
    assert found["applies"] and found["problems"] == [] and found["notes"] == []
    assert [one["interface"] for one in found["plan"]["ports"]] == ["ens0f0np0"]


def test_a_fabric_that_is_not_declared_is_told(tmp_path):
    found = decided(SUBJECT, PRESENT, facts(tmp_path, adapter(0, "Ethernet"), adapter(1)))
    (sentence,) = found["notes"]
    assert sentence.startswith("mlx5_0 at ens0f0np0: nothing sets NCCL_IB_TC, so NCCL uses class 0")


def test_what_cannot_be_meant_needs_no_facts():
    found = decided(SUBJECT, {**PRESENT, "rdma_stack": "doca"}, {})
    assert found["plan"] is None and found["problems"][0].startswith(
        "rdma_stack is doca, whose repository's key cannot be verified"
    )


def test_peer_memory_goes_by_the_planned_driver(tmp_path):
    measured = facts(tmp_path, adapter(0), gpu_stack={"driver": {"kernel_modules": "proprietary"}})
    measured["gpu_rdma"]["gpudirect"]["peermem"]["offered"] = True
    assert decided(SUBJECT, PRESENT, measured)["plan"]["modules"] == ["nvidia-peermem"]
    older = {"driver": {"kernel_modules": "proprietary", "branch": "460", "version": "460.106.00"}}
    assert decided(SUBJECT, PRESENT, {**measured, "gpu_stack": older})["plan"]["modules"] == []
    measured["gpu_node"] = {"gpus": []}
    assert decided(SUBJECT, PRESENT, measured)["plan"]["modules"] == []


def test_the_oldest_nccl_of_the_environments_counts(tmp_path):
    stack = {
        "environments": [{"name": "a", "libraries": {"nccl": "2.20.5"}}, {"name": "b"}],
        "nccl": {"version": "2.28.3"},
    }
    measured = facts(tmp_path, adapter(0), gpu_stack=stack)
    direct = measured["gpu_rdma"]["gpudirect"]
    direct["verbs"] = {"code": "ok", "adapters": {"mlx5_0": {"code": "unsupported", "errno": 95}}}
    direct["cuda"] = {"code": "ok", "version": 12040, "gpus": {"0000:07:00.0": True}}
    direct["peermem"] = {"module": "550.54.15", "clients": {}, "registered": True, "offered": True}
    judged = {one.kind: one for one in compared(SUBJECT, PRESENT, measured)}
    assert judged["gpudirect"].differs and "NCCL 2.20.5 looks for clients" in judged["gpudirect"].observed


@pytest.mark.parametrize(
    ("variables", "facts", "statuses"),
    [
        ({}, {}, []),
        ({}, {"gpu_node_state": {"records": ["rdma"]}}, ["unwanted"]),
        (PRESENT, {}, ["unknown"]),
    ],
)
def test_nodes_that_were_not_measured(variables, facts, statuses):
    assert [one.status.value for one in compared(SUBJECT, variables, facts)] == statuses


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"gpu_rdma": {"adapters": "none"}}, r"gpu_rdma\.adapters"),
        ({"gpu_node": {"gpus": "none"}}, r"gpu_node\.gpus"),
        ({"gpu_stack": {"environments": "none"}}, r"gpu_stack\.environments"),
    ],
)
def test_facts_of_the_wrong_shape(wrong, place, tmp_path):
    measured = {**facts(tmp_path, adapter(0)), **wrong}
    for judge in (
        lambda: decided(SUBJECT, PRESENT, measured),
        lambda: compared(SUBJECT, PRESENT, measured),
        lambda: adapters(PRESENT, measured),
    ):
        with pytest.raises(DocumentError, match=f"^{place}"):
            judge()


def test_adapters_go_into_the_document(tmp_path):
    measured = facts(
        tmp_path, adapter(0, "Ethernet"), adapter(1), gpu_node={"gpus": [{"index": 0, "pci_bus_id": "0000:07:00.0"}]}
    )
    node = describe("gpu-1", {"gpu-1": {"ansible_facts": measured, **PRESENT}}, True)
    read = parse(NodeVerification, json.loads(json.dumps({**node, "gpu_health": None})), "gpu-1")
    roce, infiniband = read.rdma_adapters
    assert (roce.name, roce.ports[0].link_layer, infiniband.ports[0].link_layer) == ("mlx5_0", "Ethernet", "InfiniBand")
    assert [one.path for one in roce.gpudirect] == ["unknown"] and roce.gpudirect[0].reasons[
        0
    ] == "mlx5_0 was not asked."
    assert [one.interface for one in roce.chains] == ["ens0f0np0"] and not roce.chains[0].whole
    assert (
        roce.chains[0].sentence.startswith("mlx5_0 at ens0f0np0: nothing sets NCCL_IB_TC") and infiniband.chains == ()
    )
    lost = describe("gpu-1", {"gpu-1": {"ansible_facts": measured, **PRESENT}}, False)
    assert lost["rdma_adapters"] == []


def test_without_gpus_nobody_asks_how_their_memory_is_reached(tmp_path):
    measured = facts(tmp_path, adapter(0), gpu_node={"gpus": []})
    [one] = adapters(PRESENT, measured)
    assert one["gpudirect"] == []
    assert adapters({**PRESENT, "rdma_gpudirect": False}, facts(tmp_path / "again", adapter(0)))[0]["gpudirect"] == []
    assert adapters({}, {}) == []


BOOT = [{"path": "/etc/systemd/system/allreduce-rdma@.service", "content": "[Unit]\n"}]


@pytest.mark.parametrize(("variables", "comes"), [(FABRIC, True), (PRESENT, False)])
def test_the_unit_comes_with_what_it_applies(variables, comes, tmp_path):
    plan = decided(SUBJECT, variables, facts(tmp_path, adapter(0, "Ethernet")), boot=BOOT)["plan"]
    assert (BOOT[0] in plan["files"]) is comes and "units" not in plan


def test_what_does_not_fit_the_node_is_refused(tmp_path):
    measured = facts(tmp_path, adapter(0, "Ethernet"))
    found = decided(SUBJECT, {**FABRIC, "rdma_interfaces": ["ens9"]}, measured)
    assert (found["plan"], found["applies"]) == (None, True)
    assert found["problems"] == [
        "rdma_interfaces has ens9, which this node lacks; choose from ens0f0np0, or leave it out here."
    ]


def test_each_port_is_told_unless_a_fabric_is_declared(tmp_path):
    measured = facts(tmp_path, adapter(0, "Ethernet"), adapter(1, "Ethernet"))
    notes = decided(SUBJECT, {**PRESENT, "rdma_traffic_class": "106"}, measured)["notes"]
    assert [one.partition(",")[0] for one in notes] == [
        "mlx5_0 at ens0f0np0: NCCL uses class 106", "mlx5_1 at ens1f0np0: NCCL uses class 106",
    ]  # fmt: skip


def test_only_variables_of_the_role_are_judged():
    found = decided(SUBJECT, {**PRESENT, "rdma_fixed_names": {"x": "y"}, "rdma_roce": {"dscp": 64, "priority": 3}}, {})
    assert len(found["problems"]) == 2 and found["plan"] is None


def test_without_a_plan_or_a_driver_peer_memory_is_left(tmp_path):
    measured = facts(tmp_path, adapter(0))
    measured["gpu_rdma"]["gpudirect"]["peermem"]["offered"] = True
    assert decided(SUBJECT, PRESENT, measured)["plan"]["modules"] == []
    planned = {"driver": {"kernel_modules": "proprietary", "branch": "550", "version": "550.54.15"}}
    assert decided(SUBJECT, PRESENT, {**measured, "gpu_stack": planned})["plan"]["modules"] == ["nvidia-peermem"]
    unloaded = {**measured, "gpu_stack": planned, "gpu_node": {"gpus": [], "driver": {"loaded_version": None}}}
    assert decided(SUBJECT, PRESENT, unloaded)["plan"]["modules"] == []


def test_adapters_for_the_report_are_told_whole(tmp_path):
    measured = facts(tmp_path, adapter(0, "Ethernet"), adapter(1))
    direct = measured["gpu_rdma"]["gpudirect"]
    direct["verbs"] = {
        "code": "ok",
        "adapters": {"mlx5_0": {"code": "supported"}, "mlx5_1": {"code": "unsupported", "errno": 95}},
    }
    direct["cuda"] = {"code": "ok", "version": 12040, "gpus": {"0000:07:00.0": True}}
    roce, infiniband = adapters({**PRESENT, "rdma_traffic_class": "106"}, measured)
    assert (roce["name"], infiniband["name"]) == ("mlx5_0", "mlx5_1")
    assert roce["gpudirect"] == [{"gpus": ["0000:07:00.0"], "path": "dma-buf", "reasons": []}]
    assert infiniband["gpudirect"] == [
        {
            "gpus": ["0000:07:00.0"],
            "path": "none",
            "reasons": [
                "mlx5_1 cannot register DMA buffers (error 95): its driver or the kernel is too old.",
                "nvidia_peermem is not loaded.",
            ],
        }
    ]
    assert roce["ports"][0]["netdevs"] == ("ens0f0np0",) and roce["ports"][0]["state"] == "ACTIVE"
    (way,) = roce["chains"]
    assert (way["interface"], way["whole"], infiniband["chains"]) == ("ens0f0np0", False, [])
    assert way["sentence"].startswith("mlx5_0 at ens0f0np0: NCCL uses class 106, which is DSCP 26")


def test_the_packages_nccl_counts_beside_the_environments(tmp_path):
    measured = facts(tmp_path, adapter(0), gpu_stack={"environments": [{"name": "b"}], "nccl": {"version": "2.20.5"}})
    direct = measured["gpu_rdma"]["gpudirect"]
    direct["verbs"] = {"code": "ok", "adapters": {"mlx5_0": {"code": "unsupported", "errno": 95}}}
    direct["cuda"] = {"code": "ok", "version": 12040, "gpus": {"0000:07:00.0": True}}
    direct["peermem"] = {"module": "550.54.15", "clients": {}, "registered": True, "offered": True}
    judged = {one.kind: one for one in compared(SUBJECT, PRESENT, measured)}
    assert judged["gpudirect"].differs and "NCCL 2.20.5 looks for clients" in judged["gpudirect"].observed
    assert "NCCL 2.20.5" in adapters(PRESENT, measured)[0]["gpudirect"][0]["reasons"][-1]


def test_gpus_are_asked_for_only_where_there_are_some(tmp_path):
    measured = facts(tmp_path, adapter(0))
    assert {one.kind for one in compared(SUBJECT, PRESENT, measured)} == {"link", "gpudirect"}
    measured["gpu_node"] = {"gpus": []}
    assert {one.kind for one in compared(SUBJECT, PRESENT, measured)} == {"link"}


@pytest.mark.parametrize("wrong", [{"rdma_roce": {"dscp": 26}}, {"rdma_ipoib": {"ib0": "connected"}}])
def test_what_cannot_be_meant_is_judged_all_the_same(wrong, tmp_path):
    measured = facts(tmp_path, adapter(0, "Ethernet"))
    assert [one.status.value for one in compared(SUBJECT, {**PRESENT, **wrong}, measured)] == ["unknown"]
    assert [one["name"] for one in adapters({**PRESENT, **wrong}, measured)] == ["mlx5_0"]
