# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.variables import Variables

WRITTEN = {
    "text": "535",
    "none": None,
    "nested": {"gpus": ["A40"], "kernels": ()},
    "template": "{{ driver }}",
    "nested_template": {"gpus": ["{% if true %}A40{% endif %}"]},
    "templated_key": {"{{ component }}": "latest"},
    "comment": "{# nothing #}",
    "secret": object(),
    "ansible_facts": {"motd": "{{ not a template }}"},
}


def variables():
    asked = []
    return Variables(WRITTEN, lambda: asked.append(1) or dict.fromkeys(WRITTEN, "resolved")), asked


@pytest.mark.parametrize("name", ["text", "none", "nested", "ansible_facts"])
def test_what_has_no_template_is_taken_as_it_is(name):
    found, asked = variables()
    assert found[name] == WRITTEN[name]
    assert asked == []


def test_the_others_are_resolved_by_one_question():
    found, asked = variables()
    names = ("template", "nested_template", "templated_key", "comment", "secret")
    assert [found[name] for name in names] == ["resolved"] * 5
    assert asked == [1]


def test_it_has_the_names_that_were_written():
    found, asked = variables()
    assert (list(found), len(found), "text" in found, found.get("other")) == (list(WRITTEN), len(WRITTEN), True, None)
    assert asked == []
