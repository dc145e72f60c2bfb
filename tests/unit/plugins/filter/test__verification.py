# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._verification import FilterModule


def test_a_node_that_did_not_play_is_not_reachable():
    document = FilterModule().filters()["_verification"](
        ["gpu-1"], [], {"gpu-1": {"ansible_facts": {}}}, {}, "2026-11-21T15:30:00Z"
    )
    assert (document["format"], document["finished"]) == (1, "2026-11-21T15:30:00Z")
    assert [one["name"] for one in document["nodes"]["gpu-1"]["checks"]] == ["reachable"]
