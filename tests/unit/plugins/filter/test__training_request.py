# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._training_request import FilterModule


def test_the_filter_plans_a_request():
    plan = FilterModule().filters()["_training_request"]
    assert plan(["gpu-1"], nodes="", script=__file__, directories=["/"], forks="5")["nodes"] == ["gpu-1"]
