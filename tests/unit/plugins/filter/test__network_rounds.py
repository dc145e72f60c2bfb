# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.filter._network_rounds import FilterModule


def test_the_filter_pairs_nodes():
    found = FilterModule().filters()["_network_rounds"](["c", "a", "b"], 16)
    assert len(found) == 3 and {frozenset(one.items()) for one in found} == {
        frozenset({("a", "b")}), frozenset({("a", "c")}), frozenset({("b", "c")}),
    }  # fmt: skip
