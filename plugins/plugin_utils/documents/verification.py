# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of verification for the report: verify.json (written by checks/document.py) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from .check import Check
from .comparison import Comparison
from .gpu_node import GpuNode
from .health import Judgement
from .network import Network
from .observed import Observed
from .pcie import PciePair
from .qos import QosNode
from .rdma import AdapterRecord
from .stack import Stack


@dataclass(frozen=True)
class Facts:
    """Ansible's facts of a node; None where they were not gathered."""

    distribution: str | None = None
    distribution_version: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    processor_vcpus: int | None = None
    memtotal_mb: float | None = None


@dataclass(frozen=True)
class NodeVerification:
    """One node. gpu_health is None where module gpu_health did not run; gpu_compute: what its user said of its GPUs."""

    address: str = ""
    remark: str = ""
    gpu_compute: bool = True
    facts: Facts = Facts()
    gpu_node: GpuNode = field(default_factory=GpuNode)
    gpu_stack: Stack = field(default_factory=Stack)
    gpu_node_state: Observed = field(default_factory=Observed)
    gpu_health: Judgement | None = None
    gpu_qos: QosNode | None = None
    pcie_pairs: tuple[PciePair, ...] = ()
    rdma_adapters: tuple[AdapterRecord, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Verification:
    """Every node, and what was checked of all together.

    finished: ISO 8601 text; inventory: the name of its file; collection: the version that verified.
    """

    finished: str = ""
    inventory: str = ""
    collection: str = ""
    nodes: dict[str, NodeVerification] = field(default_factory=dict)
    network: Network = field(default_factory=Network)
    cluster_checks: tuple[Check, ...] = ()
