# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.filter._node_checks import FilterModule


def test_the_filter_is_there():
    assert callable(FilterModule().filters()["_node_checks"])
