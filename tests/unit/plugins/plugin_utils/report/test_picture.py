# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.health import Judgement
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import health, machine
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.lettering import width
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.picture import draw
from ansible_collections.allreduce.gpu.tests.report import simulated


def synthetic(gpus, nics=0, nodes=1, name="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"):
    """So many GPUs over so many NUMA nodes, every pair linked; the adapters on a NUMA node of their own."""
    address = "0000:{:02x}:00.0".format
    links = [[{"active": True, "remote_type": "gpu", "remote_pci_bus_id": address(two)} for two in range(gpus) if two != one]
             for one in range(gpus)]  # fmt: skip
    return {
        "gpus": [
            {"pci_bus_id": address(number), "index": number, "name": name, "numa_node": number % nodes,
             "seen_by": ["pci", "nvml"], "nvlinks": links[number], "pcie": {"width": 16, "max_width": 16}}
            for number in range(gpus)
        ],
        "nics": [{"name": f"rocep{number}s0f1np1", "numa_node": nodes, "ports": []} for number in range(nics)],
    }  # fmt: skip


def built(name):
    if isinstance(name, tuple):
        return machine.build(parse(GpuNode, synthetic(*name)), {})
    found = simulated.measured(name)
    return machine.build(parse(GpuNode, found["gpu_node"]), health.faults(parse(Judgement, found["gpu_health"])))


MACHINES = [*simulated.MACHINES, (1,), (2, 9), (8, 0, 2), (10, 4, 4), (16, 8, 2)]
every_picture = pytest.mark.parametrize(("name", "stacked"), list(itertools.product(MACHINES, (False, True))), ids=str)


def inside(inner, outer):
    return (
        inner.left >= outer.left - 0.1
        and inner.top >= outer.top - 0.1
        and inner.left + inner.width <= outer.left + outer.width + 0.1
        and inner.top + inner.height <= outer.top + outer.height + 0.1
    )


def apart(one, two):
    return (
        one.left + one.width <= two.left + 0.1
        or two.left + two.width <= one.left + 0.1
        or one.top + one.height <= two.top + 0.1
        or two.top + two.height <= one.top + 0.1
    )


def picture_of(name, stacked):
    return draw(built(name), 341 if stacked else 1020, stacked)


@every_picture
def test_boxes_are_inside_one_another_or_apart(name, stacked):
    picture = picture_of(name, stacked)
    for one, two in itertools.combinations(picture.boxes, 2):
        assert inside(one, two) or inside(two, one) or apart(one, two), (one, two)


@every_picture
def test_every_device_is_there_once_and_in_the_picture(name, stacked):
    picture, found = picture_of(name, stacked), built(name)
    wanted = [one.kind for group in found.groups for one in machine.devices(group)]
    assert sorted(box.kind for box in picture.boxes if box.kind in ("gpu", "nic")) == sorted(wanted)
    for box in picture.boxes:
        assert box.left >= 0 and box.left + box.width <= picture.width + 0.1
        assert box.top >= 0 and box.top + box.height <= picture.height + 0.1
    assert picture.width <= (341 if stacked else 1020)


@every_picture
def test_text_is_in_a_box_and_on_no_other_text(name, stacked):
    picture = picture_of(name, stacked)
    starting = [text for text in picture.texts if text.anchor == "start"]
    for text in starting:
        around = [box for box in picture.boxes if box.left <= text.x <= box.left + box.width
                  and box.top <= text.y <= box.top + box.height]  # fmt: skip
        assert any(text.x + width(text.kind, text.text) <= box.left + box.width + 0.1 for box in around), text
    for one, two in itertools.combinations(starting, 2):
        same_line = abs(one.y - two.y) < 11
        first, second = sorted((one, two), key=lambda text: text.x)
        assert not same_line or first.x + width(first.kind, first.text) <= second.x + 0.1, (one, two)


@every_picture
def test_every_link_is_drawn_with_its_number(name, stacked):
    picture, found = picture_of(name, stacked), built(name)
    switched = [one for group in found.groups for one in machine.devices(group) if one.links]
    expected = [str(link.count) for link in found.links] + [one.faulty_links or str(one.links) for one in switched]
    assert sorted(text.text for text in picture.texts if text.kind.startswith("links")) == sorted(expected)
    assert len(picture.lines) == len(expected)


@pytest.mark.parametrize(("name", "stacked"), [("dgx", False), ((8, 0, 2), False), ((16, 8, 2), True), ((1,), False)])
def test_gpus_that_do_not_fit_into_a_row_stand_in_a_column(name, stacked):
    assert picture_of(name, False).stacked is stacked


def test_the_row_of_gpus_is_below_the_switches_and_above_the_adapters():
    boxes = picture_of("dgx", False).boxes
    tops = {kind: [box.top for box in boxes if box.kind == kind] for kind in ("switch", "gpu", "nic")}
    assert max(tops["switch"]) < min(tops["gpu"]) <= max(tops["gpu"]) < min(tops["nic"])
    assert len(tops["switch"]) == 6


def test_text_that_was_cut_keeps_the_whole():
    texts = [text for text in picture_of((2, 9), True).texts if text.whole]
    assert texts
    assert all(text.text.endswith("…") and text.whole.startswith(text.text[:-1]) for text in texts)


def test_the_same_machine_gives_the_same_picture():
    assert picture_of("broken", False) == picture_of("broken", False)
