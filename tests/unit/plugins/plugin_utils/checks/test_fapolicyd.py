# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fapolicyd in verify."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import fapolicyd
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import verification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError

KEPT = {"active": True, "permissive": False, "rules": "equal", "loaded": True, "others": False}


@pytest.mark.parametrize(
    ("different", "status", "reason", "fix"),
    [
        ({}, "passed", "", ""),
        (
            {"rules": "absent", "loaded": False},
            "failed",
            "keeps all but root from",
            "run playbook site.yml with base_fapolicyd_state",
        ),
        ({"loaded": False}, "failed", "keeps all but root from", "load it with 'systemctl restart fapolicyd'"),
        ({"rules": "absent"}, "failed", "when its rules are compiled again", "run playbook site.yml"),
        ({"rules": "different", "loaded": False}, "failed", "keeps all but root from", "run playbook site.yml"),
        (
            {"rules": "absent", "loaded": False, "others": True},
            "skipped",
            "the site's own rules or trust",
            "fapolicyd --debug-deny",
        ),
        ({"permissive": True}, "skipped", "denies nothing", ""),
        (
            {"permissive": True, "loaded": False},
            "skipped",
            "Once it enforces, fapolicyd keeps all but root",
            "load it with",
        ),
        ({"active": False, "rules": "absent", "loaded": False}, "skipped", "does not run", ""),
        (
            dict.fromkeys(("permissive", "rules", "loaded", "others")),
            "unknown",
            "only root can read",
            "run verify as root",
        ),
    ],
)
def test_the_rules_in_force(different, status, reason, fix):
    (found,) = fapolicyd.checks({"fapolicyd": {**KEPT, **different}})
    assert (found["status"], reason in found["reason"], fix in found["fix"]) == (status, True, True), found


@pytest.mark.parametrize("state", [{}, {"fapolicyd": None}])
def test_a_node_without_it_has_no_check(state):
    assert list(fapolicyd.checks(state)) == []


def test_a_fact_of_another_shape_is_refused():
    with pytest.raises(DocumentError):
        list(fapolicyd.checks({"fapolicyd": {"active": ["yes"]}}))


def test_verify_has_it():
    facts = {"gpu_node_state": {"packages": {}, "fapolicyd": {**KEPT, "loaded": False}}}
    found = verification(["gpu-1"], ["gpu-1"], {"gpu-1": {"ansible_facts": facts}}, {}, "")["nodes"]["gpu-1"]["checks"]
    assert [one["status"] for one in found if one["name"] == "fapolicyd_rules"] == ["failed"]
