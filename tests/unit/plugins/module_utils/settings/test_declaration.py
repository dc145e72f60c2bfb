# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A declaration is checked, brought into one shape, and laid on the GPUs that are meant."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.declaration import DeclarationError, parse, select
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.describe import DECLARATION, describe

GPUS = [
    {"index": 0, "uuid": "GPU-a", "pci_bus_id": "0000:07:00.0", "name": "NVIDIA A100-SXM4-80GB"},
    {"index": 1, "uuid": "GPU-b", "pci_bus_id": "0001:07:00.0", "name": "NVIDIA GeForce RTX 3090"},
    {"index": 2, "problem": "GPU is lost"},
]


@pytest.mark.parametrize(
    "given, parsed",
    [
        ({"persistence_mode": True}, {"persistence_mode": True}),
        ({"ecc": "no", "mig_mode": None}, {"ecc": False}),
        ({"power_limit_watts": "250"}, {"power_limit_watts": 250}),
        ({"power_limit_watts": 250.5}, {"power_limit_watts": 250.5}),
        ({"power_limit_watts": "default"}, {"power_limit_watts": "default"}),
        ({"compute_mode": "prohibited"}, {"compute_mode": "prohibited"}),
        (
            {"application_clocks": {"memory": "1215", "graphics": 1410}},
            {"application_clocks": {"memory": 1215, "graphics": 1410}},
        ),
        ({"locked_clocks": {"graphics": 1410}}, {"locked_clocks": {"graphics": [1410, 1410]}}),
        ({"locked_clocks": {"memory": {"min": 810, "max": 1215}}}, {"locked_clocks": {"memory": [810, 1215]}}),
        ({"locked_clocks": "default"}, {"locked_clocks": "default"}),
    ],
)
def test_values_have_one_shape(given, parsed):
    assert parse([given]) == [{"gpus": None, "settings": parsed}]


@pytest.mark.parametrize(
    "given, code, text",
    [
        ({"power_limit": 3}, "unknown_setting", "There is no setting power_limit; choose from ecc"),
        ({"power_limit_watts": "much"}, "not_watts", "'much'; give a number of watts"),
        ({"power_limit_watts": "nan"}, "not_watts", "give a number of watts"),
        ({"power_limit_watts": True}, "not_watts", "give a number of watts"),
        ({"power_limit_watts": 10**400}, "not_watts", "give a number of watts"),
        ({1: 2, "power": 3}, "unknown_setting", "There is no setting 1, power; choose from ecc"),
        ({"locked_clocks": {"graphics": float("inf")}}, "not_megahertz", "is inf; give a number of MHz"),
        (
            {"compute_mode": "exclusive_thread"},
            "not_a_compute_mode",
            "give one of default, exclusive_process, prohibited",
        ),
        ({"ecc": "maybe"}, "not_a_switch", "give true or false"),
        ({"application_clocks": {"memory": 1215}}, "not_a_clock_pair", "give {memory: MHz, graphics: MHz}"),
        ({"application_clocks": {"memory": 1215, "graphics": "fast"}}, "not_megahertz", "give a number of MHz"),
        ({"locked_clocks": {"video": 1}}, "not_clock_domains", "give graphics, memory or both"),
        ({"locked_clocks": {"graphics": {"min": 1410}}}, "not_a_clock_range", "give {min: MHz, max: MHz}"),
        ({"locked_clocks": {"graphics": {"min": 1410, "max": 210}}}, "inverted_range", "min 1410 above max 210"),
        ("fast", "not_a_list", "give a list of dictionaries"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, code, text):
    with pytest.raises(DeclarationError, match=text) as error:
        parse([given])
    assert error.value.problem["code"] == code


def test_every_sentence_for_a_declaration_is_seen_here():
    marks = test_what_cannot_be_meant_is_refused.pytestmark[0].args[1]
    assert {code for _given, code, _text in marks} == set(DECLARATION)


@pytest.mark.parametrize(
    "selector, meant",
    [
        (None, [0, 1, 2]),
        (["1"], [1]),
        ([2], [2]),
        ("GPU-a", [0]),
        (["07:00.0"], [0]),
        (["00000001:07:00.0"], [1]),
        (["a100"], [0]),
        (["A100-SXM4-80GB", "RTX 3090"], [0, 1]),
        (["GeForce RTX"], [1]),
    ],
)
def test_gpus_are_selected(selector, meant):
    chosen, problems, warnings = select(parse([{"gpus": selector, "ecc": True}]), GPUS)
    assert (sorted(chosen), problems, warnings) == (meant, [], [])


def test_an_entry_has_precedence_over_those_before_it():
    entries = parse([{"power_limit_watts": 300, "ecc": True}, {"gpus": [1], "power_limit_watts": 250}])
    chosen = select(entries, GPUS[:2])[0]
    assert chosen == {0: {"power_limit_watts": 300, "ecc": True}, 1: {"power_limit_watts": 250, "ecc": True}}


@pytest.mark.parametrize(
    "selector, text",
    [
        ("7", "This node has no GPU 7; it has GPU 0, 1, 2."),
        ("9" * 5000, "This node has no GPU %s; it has GPU 0, 1, 2." % ("9" * 5000)),
        ("GPU-x", "This node has no GPU GPU-x; it has GPU-a, GPU-b."),
        ("0002:07:00.0", "This node has no GPU 0002:07:00.0; it has 0000:07:00.0, 0001:07:00.0."),
    ],
)
def test_one_gpu_that_is_not_there_is_a_problem(selector, text):
    chosen, problems, warnings = select(parse([{"gpus": [selector], "ecc": True}]), GPUS)
    assert (chosen, warnings) == ({}, [])
    assert [(one["code"], one["subject"], describe(one)) for one in problems] == [("gpu_not_found", selector, text)]


@pytest.mark.parametrize("model", ["A10", "RTX 3090 Ti", "3090 RTX", "²"])
def test_a_model_that_is_not_there_is_warned_about(model):
    chosen, problems, warnings = select(parse([{"gpus": [model], "ecc": True}]), GPUS)
    assert (chosen, problems) == ({}, [])
    (warning,) = warnings
    assert (warning["code"], warning["subject"]) == ("gpu_not_found", model)
    assert describe(warning).endswith("; it has NVIDIA A100-SXM4-80GB, NVIDIA GeForce RTX 3090.")
