# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.causes import Cause, recognize

CAUSES = (Cause("particular", r"^disk of (?P<host>\w+)", "", ""), Cause("general", r"disk", "", ""))


def test_the_first_cause_counts_wherever_it_is():
    cause, found = recognize(CAUSES, "a disk is full\ndisk of gpu1 is full")
    assert (cause.code, found["host"]) == ("particular", "gpu1")
    assert recognize(CAUSES, "a disk of gpu1")[0].code == "general"


def test_no_cause():
    assert recognize(CAUSES, "memory") is None
