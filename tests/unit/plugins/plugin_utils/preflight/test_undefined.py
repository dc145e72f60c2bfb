# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.undefined import has_template, undefined_names

KNOWN = {
    "driver": "580",
    "through": "{{ lost }}",
    "round": "{{ round }}",
    "nested": {"a": ["{{ driver }}", "{{ gone }}"]},
}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("580", set()),
        ("no_such", set()),
        (None, set()),
        (580, set()),
        ("{{ driver }}", set()),
        ("{{ no_such }}", {"no_such"}),
        ("{% if no_such %}1{% endif %}", {"no_such"}),
        ({"driver": "{{ no_such }}", "pytorch": ["{{ other.key }}"]}, {"no_such", "other"}),
        ("{{ driver | combine({'cuda': no_such}) }}", {"no_such"}),
        ("{{ through }}", {"lost"}),
        ("{{ round }}", set()),
        ("{{ nested.a }}", {"gone"}),
        ("{{ ansible_facts.gpu_node.gpus | length }}", set()),
        ("{{ ansible_distribution }}", set()),
        ("{{ lookup('ansible.builtin.file', no_such) }}", {"no_such"}),
        ("{{ range(3) | map('string') | list }}", set()),
        ("{% set a = driver %}{{ a }}", set()),
        ("{% for one in driver %}{{ one }}{{ loop.index }}{% endfor %}", set()),
        ("{{ driver is no_such_test }}", set()),
        ("{{ driver", set()),
    ],
)
def test_names_that_nothing_defines(value, names):
    assert undefined_names(value, KNOWN) == names
    assert has_template(value) or not names


@pytest.mark.parametrize(
    ("value", "expected"),
    [("580", False), ({"a": ["b", 1]}, False), ("{{ 1 + 1 }}", False), ({"a": ["{{ b }}"]}, True), ("{{ b", False)],
)
def test_whether_a_value_has_a_template(value, expected):
    assert has_template(value) is expected
