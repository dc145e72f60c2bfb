# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The breaker holds however nodes interleave."""

import math

from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import decision
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm.decision import PREFIX, SETTLE, Seen
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_000_000
OURS = PREFIX + "xid GPU1: reboot"
IDLE = Seen("idle", "", None)
LOOK, DRAIN, AGAIN = range(3)
# A slow command is no exception.
DELAY = st.floats(0, 4 * SETTLE, allow_nan=False)


@given(
    size=st.integers(1, 45),
    sick=st.lists(st.tuples(st.floats(0, 30, allow_nan=False), DELAY, DELAY), min_size=1, max_size=15),
)
def test_however_nodes_interleave_no_more_stay_drained_than_may(size, sick):
    """Each looks, drains itself after some time, and looks again; Slurm tells times in whole seconds."""
    nodes = {f"n{number}": IDLE for number in range(max(size, len(sick)))}
    steps = []
    for place, (start, drains, looks) in enumerate(sick):
        name = f"n{place}"
        at = NOW + start
        times = (at, at + drains, at + drains + SETTLE + looks)
        steps += [(moment, step, name) for step, moment in enumerate(times)]
    willing = set()
    for at, step, name in sorted(steps):
        if step == LOOK and decision.has_room(name, nodes, at):
            willing.add(name)
        elif step == DRAIN and name in willing:
            nodes[name] = Seen("drained", OURS, math.floor(at))
        elif step == AGAIN and name in willing and not decision.may_stay(name, nodes, at):
            nodes[name] = IDLE
    stay = [name for name, seen in nodes.items() if seen != IDLE]
    assert len(stay) <= max(1, len(nodes) // 10)
    assert stay
