# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torchrun that may lose nodes: from min_nodes to all of them, with c10d.

The first node holds the rendezvous' store. A node other than it that is lost is left out by c10d; when the first is lost, the
store is lost with it, and follow.py starts all others again with a rendezvous of a new name on the next node.
"""

from __future__ import annotations

from ..job import Job, Launcher
from . import torchrun

# Seconds for which nodes wait for further ones once there are enough; c10d's own 30 delay training by as many.
LAST_CALL = 15


def arguments(job: Job) -> list[str]:
    """Return torchrun's own arguments on one node, as torchrun.arguments does."""
    nodes = f"--nnodes={job.min_nodes}:{len(job.place.nodes)}"
    return [nodes, f"--rdzv-conf={torchrun.store(job)},last_call_timeout={LAST_CALL}", *torchrun.rendezvous(job)]


def variables(job: Job) -> dict[str, str]:
    """Return the variables that let the ranks start again, which they do when nodes come or go."""
    return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


LAUNCHER = Launcher("torchrun", arguments, variables, elastic=True)
