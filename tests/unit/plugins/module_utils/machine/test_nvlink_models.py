# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks that are down: on one GPU, on all alike, and where NVML does not name what is at their other end."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvlink_models import ROWS, model_of
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.machine import Machine

SWITCHED = (machines.dgx_a100, machines.hgx_h100, machines.hgx_b200, machines.gb200_tray)
DIRECT = (machines.a100_nvlink, machines.v100_cube_mesh)
BRIDGED = (machines.a40_pcie, machines.a30_pairs, machines.a100_pcie, machines.rtx_3090)


def shortened(machine: Machine, number: int, keep: int) -> Machine:
    return machine.change(number, links=machine.gpus[number].links[:keep])


def everywhere(machine: Machine, lost: int) -> Machine:
    for number, gpu in enumerate(machine.gpus):
        machine = shortened(machine, number, max(0, len(gpu.links) - lost))
    return machine


def unnamed(machine: Machine) -> Machine:
    """As in a virtual machine: the switches are not on its bus, and NVML says 255 of the remote ends."""
    gpus = tuple(replace(gpu, links=tuple(("unknown", None) for dummy in gpu.links)) for gpu in machine.gpus)
    return replace(machine, gpus=gpus, nvswitches=())


def lacking(node):
    return {one["subject"]: one["detail"] for one in node["findings"] if one["code"] == "nvlinks_inactive"}


@pytest.mark.parametrize("make", SWITCHED + DIRECT + BRIDGED, ids=lambda make: make.__name__)
def test_a_healthy_machine_lacks_none(measure, make):
    assert lacking(measure(make())) == {}


@pytest.mark.parametrize("make", SWITCHED + DIRECT, ids=lambda make: make.__name__)
@pytest.mark.parametrize("lost", [1, 2, 99])
def test_equal_loss_on_all_gpus_is_a_loss(measure, make, lost):
    machine = make()
    links = len(machine.gpus[0].links)
    found = lacking(measure(everywhere(machine, lost)))
    assert set(found) == {f"GPU{number}" for number in range(len(machine.gpus))}
    assert all(one == {"active": max(0, links - lost), "expected": links} for one in found.values())


@pytest.mark.parametrize("make", BRIDGED, ids=lambda make: make.__name__)
def test_a_part_of_a_bridge_is_a_loss_on_both_of_its_ends(measure, make):
    machine = make()
    one, two = [number for number, gpu in enumerate(machine.gpus) if gpu.links][:2]
    links = len(machine.gpus[one].links)
    broken = shortened(shortened(machine, one, links - 1), two, links - 1)
    assert lacking(measure(broken)) == {
        f"GPU{number}": {"active": links - 1, "expected": links} for number in (one, two)
    }


def test_cards_without_bridges_and_with_fewer_lack_none(measure):
    assert lacking(measure(everywhere(machines.a40_pcie(), 99))) == {}
    assert lacking(measure(everywhere(machines.a100_pcie(), 4))) == {}


@pytest.mark.parametrize("make", [machines.hgx_h100, machines.dgx_a100], ids=lambda make: make.__name__)
@pytest.mark.parametrize("lost", [0, 1, 99])
def test_links_whose_remote_end_nobody_names(measure, make, lost):
    machine = unnamed(make())
    links = len(machine.gpus[0].links)
    found = lacking(measure(everywhere(machine, lost)))
    assert len(found) == (8 if lost else 0)
    code = measure(everywhere(machine, lost))["topology"]["GPU0"]["GPU7"]
    assert code == (f"NV{links - lost}" if lost < links else "SYS")


def test_one_gpu_of_a_board_alone_needs_no_links(measure):
    """As a virtual machine with one GPU, whose links the host's fabric manager has switched off."""
    machine = unnamed(machines.hgx_h100())
    gpu = replace(machine.gpus[0], links=(), settings=(("fabric_state", "3"),))
    assert lacking(measure(replace(machine, gpus=(gpu,)))) == {}


def test_a_gpu_that_is_cut_into_instances_uses_no_links(measure):
    machine = machines.dgx_a100()
    part = machines.a100_mig().gpus[0].mig
    assert lacking(measure(machine.change(2, links=(), mig=part))) == {}
    assert set(lacking(measure(machine.change(2, links=())))) == {"GPU2"}


def test_no_links_at_all_although_the_model_has_some(measure):
    """As with the driver's option NVreg_NvLinkDisable."""
    machine = machines.hgx_h100()
    model = replace(machine.gpus[0].model, nvlinks=0)
    gpus = tuple(replace(gpu, model=model, links=()) for gpu in machine.gpus)
    assert len(lacking(measure(replace(machine, gpus=gpus)))) == 8


def test_a_lost_gpu_lacks_no_links(measure):
    assert lacking(measure(machines.hgx_h100().change(3, failing=(15, 3)))) == {}


@pytest.mark.parametrize(
    ("make", "switches", "links"),
    [
        (machines.dgx_a100, 3, (6, 6, 6, 6)),
        (machines.dgx_a100, 1, (2, 2)),
        (machines.hgx_h100, 2, (8, 9, 9, 10)),
        (machines.hgx_h100, 1, (4, 5)),
    ],
)
def test_a_virtual_machine_with_a_part_of_a_board_and_its_switches(measure, make, switches, links):
    """As the Fabric Manager User Guide has it (Full Passthrough): a part of the links, on H100 not as many on each GPU."""
    machine = make()
    gpus = tuple(replace(gpu, links=gpu.links[:count]) for gpu, count in zip(machine.gpus, links))  # noqa: B905
    machine = replace(machine, gpus=gpus, nvswitches=machine.nvswitches[:switches])
    assert lacking(measure(machine)) == {}


@pytest.mark.parametrize(
    "make", [machines.v100_cube_mesh, machines.a100_nvlink, machines.hgx_b200], ids=lambda make: make.__name__
)
def test_fewer_gpus_than_a_board_are_compared_with_their_peers_only(measure, make):
    machine = make()
    count = len(machine.gpus[0].links) // 2
    half = tuple(replace(gpu, links=gpu.links[:count]) for gpu in machine.gpus[: len(machine.gpus) // 2])
    machine = replace(machine, gpus=half)
    assert lacking(measure(machine)) == {}
    assert lacking(measure(shortened(machine, 0, count - 1))) == {"GPU0": {"active": count - 1, "expected": count}}


def test_a_board_that_lost_switches_is_no_part_of_one(measure):
    machine = machines.dgx_a100()
    machine = replace(machine, nvswitches=machine.nvswitches[:3])
    assert len(lacking(measure(everywhere(machine, 6)))) == 8


def test_a_model_that_nobody_knows_is_compared_with_its_peers_only(measure):
    machine = machines.dgx_a100()
    model = replace(machine.gpus[0].model, name="NVIDIA X1")
    machine = replace(machine, gpus=tuple(replace(gpu, model=model) for gpu in machine.gpus))
    assert lacking(measure(everywhere(machine, 4))) == {}
    assert lacking(measure(shortened(machine, 3, 8))) == {"GPU3": {"active": 8, "expected": 12}}


@pytest.mark.parametrize(
    ("name", "links", "step"),
    [
        ("NVIDIA H100 80GB HBM3", 18, None), ("NVIDIA H200", 18, None), ("NVIDIA H20", 18, None), ("NVIDIA B200", 18, None),
        ("NVIDIA B300 SXM6 AC", 18, None), ("NVIDIA GB300", 18, None), ("NVIDIA H800", 8, None), ("NVIDIA A800-SXM4-80GB", 8, None),
        ("NVIDIA A100-SXM-80GB", 12, None), ("Tesla P100-SXM2-16GB", 4, None), ("Tesla V100-SXM2-32GB", 6, None),
        ("Tesla V100-SXM3-32GB", 6, None), ("NVIDIA A100 80GB PCIe", None, 4), ("NVIDIA A100-PCIE-40GB", None, 4), ("NVIDIA A30", None, 4),
        ("NVIDIA RTX A6000", None, 4), ("NVIDIA GeForce RTX 3090", None, 4), ("NVIDIA A40", None, 4),
        # Of these no source tells the number.
        ("NVIDIA H100 NVL", None, None), ("NVIDIA H100 PCIe", None, None), ("NVIDIA H800 PCIe", None, None), ("NVIDIA A800 80GB PCIe", None, None),
        ("NVIDIA H200 NVL", None, None), ("NVIDIA H20-3e", None, None), ("NVIDIA GH200 480GB", None, None), ("NVIDIA RTX A4000", None, None),
        ("NVIDIA L40S", None, None), ("NVIDIA RTX 6000 Ada Generation", None, None), ("NVIDIA A400", None, None), (None, None, None),
    ],
)  # fmt: skip
def test_models_by_nvmls_names(name, links, step):
    assert model_of(name)[::2] == (links, step)


def test_every_model_has_a_source_and_one_way_to_use_its_links():
    for _name, links, least, step, source in ROWS:
        assert source and (links is None) == (least is None) != (step is None)


@pytest.mark.parametrize(
    ("make", "speeds", "slow"),
    [
        (machines.hgx_h100, {}, {}),
        (machines.dgx_a100, {}, {}),
        (machines.hgx_h100, {3: {"link_speed.5": 13281}}, {"GPU3": 1}),
        (machines.hgx_h100, {3: {"link_speed": 13281}}, {"GPU3": 18}),
        # All alike: the model says what it should be.
        (machines.gb200_tray, {number: {"link_speed": 26562} for number in range(4)}, dict.fromkeys(("GPU0", "GPU1", "GPU2", "GPU3"), 18)),
        (machines.dgx_a100, {number: {"link_speed": 12500} for number in range(8)}, {f"GPU{n}": 12 for n in range(8)}),
        (machines.v100_cube_mesh, {number: {"link_speed": 20000} for number in range(8)}, {f"GPU{n}": 6 for n in range(8)}),
        # A driver that does not know the field.
        (machines.hgx_h100, {number: {"link_speed": "!3"} for number in range(8)}, {}),
    ],
)  # fmt: skip
def test_links_that_are_slow(examine, measure, make, speeds, slow):
    machine = make()
    for number, settings in speeds.items():
        more = tuple((key, str(value)) for key, value in settings.items())
        machine = machine.change(number, settings=(*more, *machine.gpus[number].settings))
    found = examine(machine)
    assert [one["gpu"] for one in found["findings"] if one["check"] == "nvlinks"] == list(slow)
    assert found["verdict"] == ("degraded" if slow else "ok")
    problems = measure(machine)["findings"]
    assert {one["subject"]: one["detail"]["links"] for one in problems if one["code"] == "nvlinks_slow"} == slow
