# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and facts in; the change, comparisons, checks and pairs out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.pcie_program import DECLARATION
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import pcie as told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError, parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import sentences as text
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.answer import SUBJECT, pairs
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.request import DEFAULTS, problems, request
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper

from tests.support.subjects import compared, decided

CLEAR = {"pcie_state": "present", "pcie_acs_redirect": "clear"}
LARGE = {"pcie_state": "present", "pcie_max_read_request": 4096}
# The first switch of hgx_h100: ports above two GPUs and two adapters; its upstream port has no ACS, its root port is above the pairs.
PORTS = {"0000:12:00.0", "0000:12:01.0", "0000:12:02.0", "0000:12:03.0", "0000:19:00.0", "0000:1d:00.0"}


def facts(place, **how):
    return {"gpu_pcie": pcie.read_pcie(helper.record(how.pop("machine", machines.hgx_h100()), place, **how))}


def test_nothing_is_asked_for_by_default():
    assert request({}) == request(DEFAULTS) and not request({}).present and not request({}).clear_redirect


@pytest.mark.parametrize(
    ("size", "codes"),
    [
        (0, []),
        (128, []),
        (4096, []),
        (64, ["pcie_no_size"]),
        (8192, ["pcie_no_size"]),
        (5000, ["pcie_no_size"]),
        (-1, ["pcie_no_size"]),
    ],
)
def test_sizes(size, codes):
    found = list(problems(request({"pcie_max_read_request": size})))
    assert [one.code for one in found] == codes
    assert all("choose from 0, 128, 256" in text.describe(one) for one in found)


def test_bridges_between_pairs_are_cleared_and_no_other_one(tmp_path):
    found = json.loads(json.dumps(decided(SUBJECT, CLEAR, facts(tmp_path))))
    assert found["problems"] == []
    paths = {one["path"] for one in found["plan"]["values"] if one["path"].startswith("/sys/bus/pci/devices/0000:1")}
    assert paths == {pcie.acs_register(address) for address in PORTS}
    assert {one["value"] for one in found["plan"]["values"]} == {"0000"} and len(found["plan"]["values"]) == 4 * len(
        PORTS
    )
    values = found["plan"]["values"]
    content = json.dumps({"values": values}, indent=1, sort_keys=True) + "\n"
    assert found["plan"]["files"] == [{"path": DECLARATION, "content": content, "mode": "0644"}]
    assert found["applies"] is True


def test_adapters_get_their_size(tmp_path):
    values = decided(SUBJECT, LARGE, facts(tmp_path))["plan"]["values"]
    assert len(values) == 8 and {one["value"] for one in values} == {"5000"}
    assert values[0]["path"] == pcie.read_request_register("0000:1a:00.0")


@pytest.mark.parametrize(("iommu", "held"), [("DMA-FQ", None), (None, "vfio-pci")])
def test_what_would_break_isolation_is_refused(tmp_path, iommu, held):
    if held:
        helper.record(machines.hgx_h100(), tmp_path)
        helper.bind(tmp_path, "0000:f0:00.0", held)
        measured = {"gpu_pcie": pcie.read_pcie(helper.FileTree(str(tmp_path)))}
    else:
        measured = facts(tmp_path, iommu=iommu)
    found = decided(SUBJECT, CLEAR, measured)
    assert len(found["problems"]) == 1 and found["problems"][0].startswith("Redirection by ACS stays: ")
    assert found["plan"] is None
    assert decided(SUBJECT, LARGE, measured)["problems"] == []


@pytest.mark.parametrize("iommu", [None, "DMA-FQ"])
def test_a_host_without_gpus_is_left_alone(tmp_path, iommu):
    measured = facts(tmp_path, machine=machines.no_gpu(), iommu=iommu)
    found = decided(SUBJECT, CLEAR, measured)
    assert (found["plan"], found["problems"]) == ({"files": [], "values": []}, [])
    assert list(told.checks(measured["gpu_pcie"], {})) == [] and compared(SUBJECT, CLEAR, measured) == []


@pytest.mark.parametrize(
    ("variables", "acs", "size", "expected"),
    [
        (CLEAR, 0x1D, 512, {("acs", Status.DIFFERS): 24}),
        (CLEAR, 0x11, 512, {("acs", Status.AS_PLANNED): 24}),
        (LARGE, 0x1D, 512, {("read_request", Status.DIFFERS): 8}),
        ({"pcie_state": "present"}, 0x1D, 512, {}),
    ],
)
def test_comparisons(tmp_path, variables, acs, size, expected):
    found: dict = {}
    for one in compared(SUBJECT, variables, facts(tmp_path, acs=acs)):
        found[one.kind, one.status] = found.get((one.kind, one.status), 0) + 1
    assert found == expected


@pytest.mark.parametrize(
    ("variables", "measured", "statuses"),
    [
        ({}, {}, []),
        ({}, {"gpu_node_state": {"records": ["pcie"]}}, [Status.UNWANTED]),
        ({"pcie_state": "present"}, {"gpu_node_state": {"records": ["pcie"]}}, [Status.UNWANTED]),
        (CLEAR, {}, [Status.UNKNOWN]),
    ],
)
def test_off_unmeasured_and_left_over(variables, measured, statuses):
    assert [one.status for one in compared(SUBJECT, variables, measured)] == statuses


def test_a_check_names_the_bridge_and_its_bits(tmp_path):
    spaces = {"0000:12:00.0": helper.space(helper.DOWNSTREAM, 0x04)}
    (check,) = drift.checks(compared(SUBJECT, CLEAR, facts(tmp_path, acs=0, spaces=spaces)))
    assert (check["name"], check["status"], check["measured"]) == ("pcie_acs", "failed", "23 as planned, 1 not")
    assert (check["reason"], check["fix"]) == ("0000:12:00.0 is ReqRedir instead of no redirection", "run site again")


def checked(place, **how):
    return {one["name"]: one for one in told.checks(facts(place, **how)["gpu_pcie"], {})}


def test_what_is_told_is_not_judged(tmp_path):
    spaces = {
        "0000:14:00.0": helper.space(width=(8, 16)),
        "0000:1a:00.0": helper.space(read_request=4096, generation=(3, 4)),
    }
    found = checked(tmp_path, spaces=spaces, iommu="DMA")
    assert {one["status"] for one in found.values()} == {"skipped"}
    assert found["pcie_paths"]["measured"] == "92 translated by the IOMMU"
    assert found["pcie_links"]["reason"] == "0000:14:00.0 has 8 of 16 lanes; mlx5_0 runs at generation 3 of 4"
    assert found["pcie_iommu"]["measured"] == "DMA for 16 devices"
    assert found["pcie_read_requests"]["measured"].endswith("mlx5_7, 4096 bytes on mlx5_0")


def test_what_is_well_passes(tmp_path):
    found = checked(tmp_path, acs=0)
    assert {name: one["status"] for name, one in found.items()} == dict.fromkeys(
        ("pcie_paths", "pcie_links", "pcie_iommu", "pcie_read_requests"), "passed"
    )
    assert found["pcie_paths"]["measured"] == "72 through the root complex, 20 direct"


def test_acs_is_named_where_it_redirects(tmp_path):
    spaces = {"0000:12:00.0": helper.space(helper.DOWNSTREAM, 0x1D)}
    one = checked(tmp_path, acs=0, spaces=spaces)["pcie_paths"]
    assert one["reason"] == "ACS redirects at bridge 0000:12:00.0 (ReqRedir, CmpltRedir)"
    assert one["measured"] == "72 through the root complex, 3 redirected by ACS, 17 direct"


def test_pairs_go_into_the_document(tmp_path):
    measured = facts(tmp_path)
    node = describe("gpu-1", {"gpu-1": {"ansible_facts": measured}}, True)
    assert node["pcie_pairs"] == pairs(measured) and len(node["pcie_pairs"]) == 92
    assert "pcie_paths" in {one["name"] for one in node["checks"]}
    read = parse(NodeVerification, json.loads(json.dumps({**node, "gpu_health": None})), "gpu-1")
    assert read.pcie_pairs[0].verdict == "redirected" and read.pcie_pairs[0].reasons[0].startswith("ACS redirects at")
    lost = describe("gpu-1", {"gpu-1": {"ansible_facts": measured}}, False)
    assert lost["pcie_pairs"] == [] and [one["name"] for one in lost["checks"]] == ["reachable"]


def test_facts_of_the_wrong_shape_are_refused():
    with pytest.raises(DocumentError, match="gpu_pcie"):
        pairs({"gpu_pcie": {"devices": 1}})
