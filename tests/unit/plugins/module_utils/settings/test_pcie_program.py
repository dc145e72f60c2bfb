# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bits of bridges and adapters of a recorded machine: changed, put back, and written again at boot."""

import json
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import pci_config
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import (
    pcie_program,
    tuning,
    tuning_plan,
    tuning_record,
)
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

# The switch's port above the first GPU, and the first adapter.
BRIDGE, NIC = "0000:12:00.0", "0000:1a:00.0"
CLEAR = {"path": pcie.acs_register(BRIDGE), "value": "0000"}
LARGE = {"path": pcie.read_request_register(NIC), "value": "5000"}
RECORD = tuning_record.path_of(pcie.RECORD)


def config(root, address):
    return pci_config.describe((root / "sys/bus/pci/devices" / address / "config").read_bytes())


def settle(made, check=False, **wanted):
    def replace(path, content):
        Path(path).write_bytes(content)

    machine = tuning.Machine(made, replace, None, RECORD)
    return tuning.settle(machine, dict(tuning_plan.NOTHING, **wanted), check)


@pytest.fixture
def made(tmp_path):
    return helper.record(machines.hgx_h100(), tmp_path)


def test_the_way_there_and_back(made, tmp_path):
    before = snapshot(tmp_path)
    assert config(tmp_path, BRIDGE)["acs"] == 0x1D and config(tmp_path, NIC)["read_request"] == 512
    predicted = settle(made, True, values=[CLEAR, LARGE])
    assert snapshot(tmp_path) == before
    assert settle(made, values=[CLEAR, LARGE]) == predicted
    assert [(one["subject"], one["before"], one["after"]) for one in predicted["changes"]] == [
        (CLEAR["path"], "000c", "0000"),
        (LARGE["path"], "2000", "5000"),
    ]
    assert config(tmp_path, BRIDGE)["acs"] == 0x11 and config(tmp_path, NIC)["read_request"] == 4096
    assert settle(made, values=[CLEAR, LARGE])["changed"] is False
    assert settle(made, values=[LARGE])["changed"] and config(tmp_path, BRIDGE)["acs"] == 0x1D
    assert settle(made)["changed"] and snapshot(tmp_path) == before


def test_it_is_recorded_before_it_is_changed(made, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(pci_config, "write_register", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            settle(made, values=[CLEAR])
    assert tuning_record.load(made, RECORD)["values"] == {CLEAR["path"]: "000c"}


def test_a_kernel_in_lockdown_is_told(made, tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(pci_config, "write_register", refuse)
    (one,) = settle(made, values=[CLEAR])["problems"]
    assert (one["code"], one["detail"]["reason"]) == ("not_set", "Operation not permitted")


def test_a_bit_that_the_hardware_does_not_take_is_told(made, monkeypatch):
    monkeypatch.setattr(pci_config, "write_register", lambda *given: None)
    (one,) = settle(made, values=[CLEAR])["problems"]
    assert (one["code"], one["detail"]["found"]) == ("not_kept", "000c")


def test_a_device_that_is_gone_is_left_out(made):
    values = [{"path": pcie.acs_register("0000:99:00.0"), "value": "0000"}]
    assert settle(made, values=values)["changed"] is False


def boot(made, *values, check=False):
    tree(Path(made.root), {pcie_program.DECLARATION: json.dumps({"values": list(values)})})
    return pcie_program.main(["--check"] if check else [], made)


def test_at_boot_the_bits_are_written_again(made, tmp_path, capsys):
    assert boot(made, CLEAR, LARGE, check=True) is None and config(tmp_path, BRIDGE)["acs"] == 0x1D
    assert capsys.readouterr().out.count("\n") == 2
    assert boot(made, CLEAR, LARGE) is None
    assert config(tmp_path, BRIDGE)["acs"] == 0x11 and config(tmp_path, NIC)["read_request"] == 4096
    assert tuning_record.load(made, RECORD)["values"] == {CLEAR["path"]: "000c", LARGE["path"]: "2000"}
    capsys.readouterr()
    assert boot(made, CLEAR, LARGE) is None and capsys.readouterr().out == ""


def test_at_boot_what_guests_were_given_keeps_its_isolation(made, tmp_path):
    helper.bind(tmp_path, "0000:f0:00.0", "vfio-pci")
    assert boot(made, CLEAR, LARGE) == (
        "Redirection by ACS stays: 0000:f0:00.0 are held for guests, which it isolates; "
        "release them, or set pcie_acs_redirect to keep."
    )
    assert config(tmp_path, BRIDGE)["acs"] == 0x1D and config(tmp_path, NIC)["read_request"] == 4096


def test_at_boot_other_devices_are_left_alone(made, tmp_path):
    """A number may be another device's after somebody has moved cards."""
    other = tmp_path / "sys/bus/pci/devices/0000:f0:00.0"
    other.mkdir()
    (other / "config").write_bytes(helper.space(helper.DOWNSTREAM, 0x1D))
    assert boot(made, {"path": pcie.acs_register("0000:f0:00.0"), "value": "0000"}) is None
    assert config(tmp_path, "0000:f0:00.0")["acs"] == 0x1D


def test_without_a_declaration_or_with_other_words_it_says_so(made):
    assert "pcie.json cannot be applied" in pcie_program.main([], made)
    assert "usage" in pcie_program.main(["--what"])
