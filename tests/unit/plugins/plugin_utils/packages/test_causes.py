# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.causes import Cause, bounded, recognize

CAUSES = (Cause("particular", r"^disk of (?P<host>\w+)", "", ""), Cause("general", r"disk", "", ""))


def test_the_first_cause_counts_wherever_it_is():
    cause, found = recognize(CAUSES, "a disk is full\ndisk of gpu1 is full")
    assert (cause.code, found["host"]) == ("particular", "gpu1")
    assert recognize(CAUSES, "a disk of gpu1")[0].code == "general"


def test_no_cause():
    assert recognize(CAUSES, "memory") is None


def test_an_output_keeps_its_beginning_and_its_end():
    output = f"disk of gpu1\n{'word ' * 100_000}\n/{'a' * 5000} is full\nthe end"
    found = bounded(output)
    assert found.startswith("disk of gpu1\nword ") and found.endswith(f"/{'a' * 999}… is full\nthe end")
    assert len(found) < 1 << 16
    assert bounded("as it is\n") == "as it is\n"
