# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.coherence import judge_coherence
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host_reading import read_rivals
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import (
    ADDRESS,
    answer,
    node,
    result,
)


@pytest.mark.parametrize(
    ("machine", "verdict", "check"),
    [
        (node(loaded_version=None, library_version=None), "failed", "module_loaded"),
        (node(library_version="550.1", nvml="mismatch", nvml_state="failed"), "reboot_required", "driver_library"),
        (node(library_version=None, nvml="not found", nvml_state="failed"), "failed", "driver_library"),
        (node(nvml="Unknown Error", nvml_state="failed"), "failed", "nvml"),
        (node(nvml="pynvml is missing", nvml_state="pynvml_missing"), "unknown", "nvml"),
        (node(fabric={"state": "in_progress"}), "failed", "fabric"),
        (node(fabric={"state": "not_started", "manager_needed": False}), "failed", "fabric"),
    ],
)
def test_each_fault_has_its_finding(machine, verdict, check):
    found = result(machine)
    assert found[0] == verdict
    assert {name for name, _severity in found[1]} == {check}


NOUVEAU = {"kernel_driver": "nouveau"}
ABSENT = {"loaded_version": None, "library_version": None}
REJECTED = "4,0,5,-;Loading of module with unavailable key is rejected\n"


@pytest.mark.parametrize(
    ("gpu", "rivals", "log", "measured"),
    [
        ({}, {}, "", "not loaded"),
        ({"kernel_driver": "nvidia"}, {}, None, "not loaded"),
        (NOUVEAU, {}, "", f"nouveau has {ADDRESS}"),
        (NOUVEAU, {"nouveau": {"blacklisted": None}}, REJECTED, f"nouveau has {ADDRESS}; nothing below modprobe.d keeps it from loading"),
        (
            {"kernel_driver": "nova_core"},
            {"nova_core": {"blacklisted": "/etc/modprobe.d/a.conf"}},
            "",
            f"nova_core has {ADDRESS}; /etc/modprobe.d/a.conf blacklists it: the initramfs is older, or the node was not rebooted",
        ),
        ({"kernel_driver": "vfio-pci"}, {"nouveau": {"blacklisted": None}}, "", f"vfio-pci has {ADDRESS}"),
        ({}, {}, REJECTED, "not loaded; the kernel says: Loading of module with unavailable key is rejected"),
        ({}, {}, "Loading of unsigned module is rejected", "not loaded; the kernel says: Loading of unsigned module is rejected"),
        (
            {},
            {},
            "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
            "not loaded; the kernel says: Lockdown: modprobe: unsigned module loading is restricted",
        ),
    ],
)  # fmt: skip
def test_what_keeps_the_driver_away_is_named(gpu, rivals, log, measured):
    found, *_more = judge_coherence(node(gpu, **ABSENT), {"rivals": rivals}, log)
    (one,) = found["findings"]
    assert (one["check"], one["severity"], one["measured"]) == ("module_loaded", "failed", measured)
    assert ("blacklist" in one["action"]) is bool(gpu and gpu != {"kernel_driver": "nvidia"})
    loaded, *_more = judge_coherence(node(gpu), {"rivals": rivals}, log)
    assert loaded["findings"] == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {}),
        ({"sys/module/nouveau/refcnt": "1\n"}, {"nouveau": None}),
        ({"sys/module/nouveau/refcnt": "1\n", "sys/module/nvidia/refcnt": "1\n"}, {}),
        ({"sys/module/nova_core/refcnt": "1\n", "root/etc/modprobe.d/a.conf": "blacklist nouveau\n"}, {"nova_core": None}),
        (
            {"sys/module/nouveau/refcnt": "1\n", "root/usr/lib/modprobe.d/a.conf": "# x\n blacklist  nouveau \n"},
            {"nouveau": "/usr/lib/modprobe.d/a.conf"},
        ),
        ({"sys/module/nouveau/refcnt": "1\n", "root/etc/modprobe.d/a.conf": "install nouveau /bin/false\n"}, {"nouveau": "/etc/modprobe.d/a.conf"}),
        ({"sys/module/nouveau/refcnt": "1\n", "root/etc/modprobe.d/a.conf": "install nouveau /usr/bin/false\n"}, {"nouveau": "/etc/modprobe.d/a.conf"}),
        ({"sys/module/nova_core/refcnt": "1\n", "root/etc/modprobe.d/a.conf": "blacklist nova-core\n"}, {"nova_core": "/etc/modprobe.d/a.conf"}),
        ({"sys/module/nouveau/refcnt": "1\n", "root/etc/modprobe.d/a.conf": "#blacklist nouveau\noptions nouveau modeset=0\n"}, {"nouveau": None}),
        ({"sys/module/nouveau/refcnt": "1\n", "root/etc/modprobe.d/a.conf~": "blacklist nouveau\n"}, {"nouveau": None}),
    ],
)  # fmt: skip
def test_which_drivers_of_the_kernel_are_in_the_way(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_rivals(FileTree(str(tmp_path / "sys")), FileTree(str(tmp_path / "root")))
    assert found == {name: {"blacklisted": file} for name, file in expected.items()}


@pytest.mark.parametrize(
    ("machine", "absent"),
    [
        (node(fabric={"state": None}), "fabric"),
        (node(fabric={"state": "not_supported"}), "fabric"),
        (node(loaded_version=None), "driver_library"),
        (node(library_version="550.1"), "nvml"),
    ],
)
def test_what_does_not_apply_is_not_judged(machine, absent):
    names = [entry["check"] for entry in answer(machine)["judged"]]
    assert "xid" in names
    assert absent not in names


def test_a_fabric_that_is_set_up_is_judged_and_has_no_finding():
    found = answer(node(fabric={"state": "completed"}))
    assert "fabric" in [entry["check"] for entry in found["judged"]]
    assert found["findings"] == []


def test_a_node_without_gpus_is_not_judged():
    bare = {**node(loaded_version=None), "gpus": []}
    assert answer(bare)["judged"] == []
