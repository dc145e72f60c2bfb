# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._training_request import FilterModule

plan = FilterModule().filters()["_training_request"]


def test_the_filter_plans_a_request():
    found = plan(["gpu-1"], nodes="", script=__file__, directories=["/"], forks="5")
    assert (found["nodes"], found["script"], found["refusal"]) == (["gpu-1"], __file__, None)


def test_a_refusal_is_one_sentence_with_an_empty_request():
    assert plan(["gpu-1", "gpu-2"], nodes="", script=__file__, directories=["/"], forks=1) == {
        "nodes": [],
        "script": "",
        "files": [],
        "refusal": "Training on 2 nodes needs as many forks, but Ansible runs with 1; add '-f 2' to the command line.",
    }
