# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data centre bridging as the real program dcb shows it; the kernel below it is simulated."""

import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import dcb
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import Bridging

PORT = "ens1f0np0"
# What dcb of iproute2 6.1 printed of a port with DSCP 26 and 48 declared.
RECORDED = {
    "app": '{"dscp_prio":[[26,3],[48,6]]}',
    "pfc": '{"pfc_cap":8,"macsec_bypass":false,"delay":0,"prio_pfc":[false,false,false,true,false,false,false,false]}',
    "ets": '{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[50,100,100,50,100,100,100,100],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":["ets","strict","strict","ets","strict","strict","strict","strict"],"prio_tc":[0,0,0,3,0,0,6,0],'
    '"reco_tc_bw":[0,0,0,0,0,0,0,0],"reco_tc_tsa":["strict","strict","strict","strict","strict","strict","strict","strict"],'
    '"reco_prio_tc":[0,0,0,0,0,0,0,0]}',
    "buffer": '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[262016,131072,0,0,0,0,0,0],"total_size":524160}',
    "dcbx": '{"host":true,"ieee":true}',
}
READ = {
    "apps": {"26": 3, "48": 6},
    "default": 0,
    "pfc": [3],
    "ets": {
        "tsa": ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
        "bandwidth": [50, 100, 100, 50, 100, 100, 100, 100],
        "classes": [0, 0, 0, 3, 0, 0, 6, 0],
    },
    "buffers": {"of": [0, 0, 0, 1, 0, 0, 0, 0], "sizes": [262016, 131072, 0, 0, 0, 0, 0, 0]},
    "dcbx": ["host", "ieee"],
}
SETTING = [
    ["app", "replace", "dev", PORT, "dscp-prio", "26:3", "48:6"],
    ["pfc", "set", "dev", PORT, "prio-pfc", "all:off", "3:on"],
    ["ets", "set", "dev", PORT, "tc-tsa", "all:strict", "0:ets", "3:ets", "tc-bw", "all:0", "0:50", "3:50",
     "prio-tc", "all:0", "3:3", "6:6"],
]  # fmt: skip
needs_dcb = pytest.mark.skipif(shutil.which("dcb") is None, reason="iproute2 without dcb")


def test_a_recorded_port():
    assert dcb.read_port(lambda arguments: RECORDED[arguments[2]], PORT) == READ


def test_words_in_place_of_truths():
    """Releases of iproute2 differ in how they print what is on."""
    words = {"pfc": '{"prio_pfc":["off","on","off","off","off","off","off","off"]}'}
    assert dcb.read_port(lambda arguments: words.get(arguments[2]), PORT)["pfc"] == [1]


@needs_dcb
def test_the_program_prints_what_was_recorded(tmp_path):
    bridging = Bridging(tmp_path, PORT)
    for arguments in SETTING:
        assert bridging.run(["dcb", *arguments]) == (0, "")
    for part, text in RECORDED.items():
        assert bridging.output(["dcb", "-j", part, "show", "dev", PORT]) == text + "\n", part
    assert dcb.read_port(bridging.output, PORT) == READ


@needs_dcb
def test_a_port_as_its_driver_leaves_it(tmp_path):
    found = dcb.read_port(Bridging(tmp_path, PORT).output, PORT)
    assert (found["apps"], found["default"], found["pfc"]) == ({}, 0, [])


@needs_dcb
def test_a_port_without_bridging(tmp_path):
    found = dcb.read_port(Bridging(tmp_path).output, "eth0")
    assert found == dict.fromkeys(("apps", "default", "pfc", "ets", "buffers", "dcbx"))


@pytest.mark.parametrize(
    ("files", "program", "agent"),
    [
        ({}, False, False),
        ({"/usr/sbin/dcb": "", "/proc/812/comm": "lldpad\n"}, True, True),
        ({"/sbin/dcb": "", "/proc/812/comm": "lldpd\n", "/proc/self/comm": "lldpad\n"}, True, False),
    ],
)
def test_program_and_agent(tmp_path, files, program, agent):
    root = tree(tmp_path, files)
    assert (dcb.has_program(root), dcb.has_agent(root)) == (program, agent)
