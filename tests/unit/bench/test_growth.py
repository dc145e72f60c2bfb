# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bench says of growth, without hosts."""

import pytest

from tests.bench import growth
from tests.lab import traffic
from tests.lab.traffic import Traffic, Transfer

PACKETS = {traffic.OUTSIDE: 0, traffic.CACHE: 10, traffic.CONTROLLER: 2_000_000, traffic.NEIGHBOURS: 0}
PACKAGE = "debrep/pool/main/d/dkms/dkms_3.0.10-8_all.deb"


def downloaded(*transfers, held=(), packets=None):
    return Traffic(
        tuple(Transfer("apt", fetched, size, "10.0.0.1", path) for fetched, size, path in transfers),
        packets or PACKETS,
        frozenset(held),
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"package": ["a 1"]}, {"package": ["a 1"]}, []),
        (
            {"package": ["a 1", "b 1"]},
            {"package": ["a 2", "b 1"]},
            ["package a 1: only where site ran", "package a 2: only where it was typed"],
        ),
        ({"package": []}, {"package": [], "DKMS module": ["n"]}, ["DKMS module n: only where it was typed"]),
    ],
)
def test_differences(ours, theirs, expected):
    assert growth.differences(ours, theirs) == expected


@pytest.mark.parametrize(
    ("differ", "said"),
    [([], "both ended with the same: 2 × package"), (["package a 1: only where site ran"], "NOT the same installed:")],
)
def test_the_first_converge_in_words(differ, said):
    ours = growth.Built(210, 150, {"package": ["a 1", "b 1"]}, downloaded())
    hand = growth.Built(200, 100, {"package": ["a 1", "b 1"]}, downloaded())
    text = growth.converge_table("the demo's stack", ours, hand, differ)
    assert "1.05 ×" in text
    assert "1.50 ×" in text
    assert said in text
    assert all(one in text for one in differ)


@pytest.mark.parametrize(
    ("held", "said"), [([], "nothing that the cache held"), ([PACKAGE], "1 files that the cache held: debrep/pool")]
)
def test_an_added_node_in_words(held, said):
    text = growth.added_table(downloaded((False, 5_000_000, PACKAGE), (True, 1_500_000, PACKAGE), held=held))
    assert text.splitlines()[3].split() == ["apt", "5.0", "MB", "1.5", "MB"]
    assert text.splitlines()[-1] == f"  from outside came {said}" or text.splitlines()[-1].startswith(
        f"  from outside came {said}"
    )
