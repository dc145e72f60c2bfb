# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who cannot reach whose memory is named, once, and a GPU that is lost meanwhile is not taken for a pair's fault."""

import ctypes

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.p2p_access import p2p_access, read_p2p_access
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said


def told(found):
    return [(one["gpu"], one["measured"], one["severity"]) for one in found["findings"] if one["check"] == "p2p_access"]


def judgement(found):
    return [one["measured"] for one in found["judged"] if one["check"] == "p2p_access"]


@pytest.mark.parametrize(
    ("make", "pairs"),
    [(machines.hgx_h100, 28), (machines.a40_pcie, 6), (machines.rtx_3090_3080, 1), (machines.gb200_tray, 6)],
)
def test_every_pair_is_probed_once(examine, make, pairs):
    found = examine(make())
    assert (found["verdict"], judgement(found)) == ("ok", [f"known of {pairs} pairs"])


@pytest.mark.parametrize("make", [machines.gh200, machines.a100_mig, machines.no_gpu])
def test_without_peers_nothing_is_judged(examine, make):
    assert judgement(examine(make())) == []


def test_both_ways_are_named_where_they_differ(examine):
    found = examine(said(machines.dgx_a100(), 0, ("p2p.7.1", "3")))
    assert told(found) == [("GPU0", "GPU0 to GPU7: read ok, write topology not supported", "degraded")]


def test_gpus_that_are_cut_up_are_not_asked(examine):
    machine = machines.hgx_h100()
    for number in range(8):
        machine = said(machine, number, ("mig", "1 1"), ("p2p.5", "5"))
    assert judgement(examine(machine)) == []


def test_what_a_setting_switches_off_says_which(examine):
    (found,) = examine(said(machines.a40_pcie(), 2, ("p2p.3", "4")))["findings"]
    assert (found["action_class"], "NVreg_RegistryDwords" in found["action"]) == ("configure", True)


@pytest.mark.parametrize("code", [10, 15, 16])
def test_a_gpu_that_is_lost_meanwhile_is_named_and_not_its_peers(measure, library, tmp_path, code):
    machine = machines.hgx_h100()
    gpus = measure(machine)["gpus"]
    lines = list(recording.profile(machine.change(5, failing=(code, 3)), {}))
    (tmp_path / "profile").write_text("".join(f"{line}\n" for line in lines))
    ctypes.CDLL(str(library)).simulated_reset()
    with open_nvml(str(library)) as (nvml, dummy):
        pairs, errors = read_p2p_access(nvml, gpus)
    assert list(errors) == [machine.gpus[5].address]
    (entry,) = p2p_access(gpus, pairs, {})
    assert entry["findings"] == []


def test_the_lost_one_decides_the_verdict(examine, monkeypatch):
    """Its error comes after all else was read."""
    machine = machines.hgx_h100()
    errors = {machine.gpus[5].address: {"DeviceGetP2PStatus": "gpu_lost"}}
    monkeypatch.setitem(examine.__globals__, "read_p2p_access", lambda *dummy: ({}, errors))
    found = examine(machine)
    assert [(one["check"], one["gpu"]) for one in found["findings"]] == [("gpu_answers", "GPU5")]
