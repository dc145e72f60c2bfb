# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One job of Slurm's on all nodes, which starts torchrun on each; all nodes, or none.

The first node submits it, as the training user, not the controller: the unit there ends the job when no controller follows the run any more, and
the user, the script and its logs are there; a controller need not have any of them.
"""

from __future__ import annotations

from typing import Any

from ..job import Job, Launcher
from . import torchrun

# Debian's packages; what is built from source by default, and where others put it.
PROGRAMS = ("/usr/bin/sbatch", "/usr/local/bin/sbatch", "/opt/slurm/bin/sbatch")


def more(job: Job) -> dict[str, Any]:
    """Return the further options of the agent."""
    return {
        "is_first": job.place.is_first,
        "programs": list(PROGRAMS),
        "nodes": list(job.place.scheduled),
        "gpus": job.place.gpus,
        "job": f"allreduce-{job.run_id}",
        "restarts": job.max_restarts,
    }


LAUNCHER = Launcher(
    "slurm",
    torchrun.arguments,
    torchrun.variables,
    more=more,
    files=("agent.py", "rank.py", "sitecustomize.py", "watch.py", "slurm.py", "commands.py"),
    programs=PROGRAMS,
    queued=True,
)
