# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables are found by name, and what is not ours is left alone."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.variables import (
    GENERIC_ROLES,
    Finding,
    declared_options,
    find_unknown,
)

from tests.support.calls import calls

ROLES = Path(__file__).resolve().parents[5] / "roles"
DECLARED = {
    "base": {"base_ca_certificates", "base_ntp_servers", "base_proxy"},
    "cluster_ssh": {"cluster_ssh_user", "cluster_ssh_hosts_file", "gpu_cluster_address"},
    "nvidia_driver": {"nvidia_driver_allow_reboot", "nvidia_driver_without_gpu"},
    "python_env": {"python_env_no_index", "python_env_find_links"},
    "stack": {"gpu_stack_request"},
}


def only(name, **kwargs):
    """The one finding about a name, or None."""
    findings = find_unknown([name], DECLARED, **kwargs)
    assert len(findings) <= 1
    return findings[0] if findings else None


def test_options_of_all_entry_points_count_as_declared():
    options = {"base_a": {"type": "int"}}, {"base_b": {"type": "str"}}
    specs = {"base": {"argument_specs": {"main": {"options": options[0]}, "late": {"options": options[1]}}}}
    assert declared_options(specs) == {"base": {**options[0], **options[1]}}


def test_empty_argument_specs_declare_nothing():
    assert declared_options({"base": {}, "nccl": {"argument_specs": {"main": None}}}) == {"base": {}, "nccl": {}}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("nvidia_driver_allow_rebot", "nvidia_driver_allow_reboot"),
        ("nvidia_driver_reboot_allow", "nvidia_driver_allow_reboot"),
        ("base_ca_certificate", "base_ca_certificates"),
        ("base_proxys", "base_proxy"),
        ("python_env_noindex", "python_env_no_index"),
        ("gpu_stack_reqest", "gpu_stack_request"),
        ("gpu_cluster_adress", "gpu_cluster_address"),
        ("pyton_env_find_links", "python_env_find_links"),
        ("clusterssh_user", "cluster_ssh_user"),
    ],
)
def test_misspelt_name_fails_and_names_the_nearest(wrong, right):
    finding = only(wrong)
    assert (finding.nearest, finding.is_certain) == (right, True)


def test_distinctive_prefix_without_near_name_fails():
    finding = only("nvidia_driver_colour")
    assert finding == Finding("nvidia_driver_colour", "nvidia_driver", None)
    assert finding.is_certain


def test_ordinary_word_without_near_name_may_be_a_variable_of_the_site():
    finding = only("base_image")
    assert finding == Finding("base_image", "base", None)
    assert not finding.is_certain


def test_only_roles_that_exist_are_ordinary_words():
    assert {name for name in GENERIC_ROLES if not (ROLES / name / "meta" / "argument_specs.yml").is_file()} == set()


@pytest.mark.parametrize(
    "name",
    [
        "nvidia_driver_allow_reboot",
        "__nvidia_driver_plan",
        "_private",
        "ansible_host",
        "gpu_node",
        "gpu_stack",
        "gpu_count",
        "baseline",
        "basement_door",
        "inventory_hostname",
        "report_directory",
    ],
)
def test_names_that_are_not_ours_or_are_right_pass(name):
    assert only(name) is None


def test_ignored_names_and_patterns_pass():
    assert only("nvidia_driver_skip_reboot", ignore=["nvidia_driver_skip_reboot"]) is None
    assert only("nvidia_driver_skip_reboot", ignore=["nvidia_driver_s*"]) is None


def test_an_option_that_another_role_declares_is_near_too():
    declared = {"report": {"report_title"}, "verify": {"report_remark"}}
    assert find_unknown(["report_remrak"], declared) == [Finding("report_remrak", "report", "report_remark")]


def test_longest_role_name_owns_the_variable():
    declared = {"nvidia": {"nvidia_a"}, "nvidia_driver": {"nvidia_driver_branch"}}
    assert find_unknown(["nvidia_driver_xyz"], declared)[0].role == "nvidia_driver"


def test_nothing_declared_finds_nothing():
    assert find_unknown(["base_x"], {}) == []


def test_a_name_costs_as_much_among_thousands_as_among_hundreds():
    names = [f"site_variable_{number}" for number in range(1000, 4000)]
    assert find_unknown(names, DECLARED) == []
    assert calls(find_unknown, names, DECLARED) < 11 * calls(find_unknown, names[:300], DECLARED)
