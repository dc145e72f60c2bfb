# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torchrun with the c10d rendezvous on the first node; all nodes, or none."""

from __future__ import annotations

from ..job import Job, Launcher


def arguments(job: Job) -> list[str]:
    """Return torchrun's own arguments on one node, without the number of ranks, which is measured there.

    * --local-addr: without it, nodes that cannot resolve each other's host names wait for each other for minutes.
    * is_host: torchrun otherwise guesses from host names which node listens; and with a guess it takes whatever
      already listens on a busy port for the rendezvous.
    """
    return [f"--nnodes={len(job.place.nodes)}", f"--rdzv-conf={store(job)}", *rendezvous(job)]


def rendezvous(job: Job) -> list[str]:
    """Return the arguments that do not depend on how many nodes there must be."""
    return [
        "--rdzv-backend=c10d",
        f"--rdzv-id={job.run_id}",
        f"--rdzv-endpoint={job.place.rendezvous}",
        f"--local-addr={job.place.address}",
        f"--max-restarts={job.max_restarts}",
        f"--log-dir={job.directory}/logs/torchrun",
    ]


def store(job: Job) -> str:
    """Return the option that says who holds the rendezvous' store: the first node, and it alone."""
    return f"is_host={int(job.place.is_first)}"


def variables(job: Job) -> dict[str, str]:
    """Return the variables that let the ranks start again.

    The ranks' process group otherwise uses the rendezvous' own store, in which Gloo finds the addresses of the ranks
    that have ended: with torch 2.13 no restart across two nodes came up.
    """
    return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if job.max_restarts else {}


LAUNCHER = Launcher("torchrun", arguments, variables)
