# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on hosts of the lab's own inventory."""

from . import hosts, paths
from .job import Job, steps

INVENTORY = paths.CHECKOUT / "inventories" / "lab"
MACHINE = "a100-nvlink"  # what its hosts are: 4 x A100 40 GB, simulated


def up(nodes: int) -> None:
    """Bring the hosts up."""
    hosts.up("gpu", nodes, INVENTORY / "hosts.yml", MACHINE, pythons=False)


def job(nodes: int) -> Job:
    """Return what is done on them."""
    return Job(INVENTORY, tuple(steps(nodes)), "make demo")
