# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings subjects: each is a room here and a line below, and whatever else has to know them loops over SUBJECTS."""

from __future__ import annotations

from .cluster_ssh.request import SUBJECT as CLUSTER_SSH
from .firewall.answer import SUBJECT as FIREWALL
from .gpu_settings.request import SUBJECT as GPU_SETTINGS
from .health.request import SUBJECT as HEALTH
from .monitoring.answer import SUBJECT as MONITORING
from .nccl.answer import SUBJECT as NCCL
from .pcie.answer import SUBJECT as PCIE
from .qos.answer import SUBJECT as QOS
from .rdma.answer import SUBJECT as RDMA
from .scratch.answer import SUBJECT as SCRATCH
from .slurm.answer import SUBJECT as SLURM
from .subject import Subject
from .tuning.answer import SUBJECT as TUNING

# In the order in which they are compared and shown.
SUBJECTS: tuple[Subject, ...] = (
    TUNING, FIREWALL, NCCL, RDMA, PCIE, QOS, SCRATCH, GPU_SETTINGS, HEALTH, MONITORING, CLUSTER_SSH,
    SLURM,
)  # fmt: skip
BY_NAME = {one.name: one for one in SUBJECTS}
