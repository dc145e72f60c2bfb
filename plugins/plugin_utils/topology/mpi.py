# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for MPI from the measured nodes: pure functions of {node: gpu_node}."""

from __future__ import annotations

from collections.abc import Mapping

from .nics import rank_binding


def mpi_hostfile(gpu_nodes: Mapping[str, Mapping]) -> str:
    """Return one line for each node, with as many slots as GPUs answer (one where none does)."""
    return "".join(f"{name} slots={len(rank_binding(node)) or 1}\n" for name, node in gpu_nodes.items())


def mpi_rankfile(gpu_nodes: Mapping[str, Mapping]) -> str:
    """Return one line for each rank, in the order of the nodes and their GPUs.

    Without known CPUs a rank is left to MPI.
    """
    bound = [(name, binding["cpus"]) for name, node in gpu_nodes.items() for binding in rank_binding(node)]
    return "".join(f"rank {rank}={name} slot={cpus}\n" for rank, (name, cpus) in enumerate(bound) if cpus)
