# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._verification_summary import FilterModule


def test_what_did_not_pass_stands_below_its_node():
    check = {
        "node": "gpu-1",
        "name": "reachable",
        "status": "failed",
        "measured": "no",
        "expected": "yes",
        "reason": "it does not answer",
        "fix": "look at its power",
    }
    document = {"nodes": {"gpu-1": {"checks": [check]}}, "cluster_checks": []}
    found = FilterModule().filters()["_verification_summary"](document)
    assert found["lines"][:4] == [
        "gpu-1: failed (1 failed)",
        "  failed: reachable: no; expected: yes",
        "    why: it does not answer.",
        "    fix: Look at its power.",
    ]
