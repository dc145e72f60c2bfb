# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that users and other projects rely on. One that goes or comes is a decision: change the lists on purpose."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]

PLUGINS = {
    "modules": {
        "config_files", "dkms", "download", "firewall", "firewall_facts", "gpu_facts", "gpu_health", "gpu_settings", "nccl_facts",
        "node_probe", "node_state", "package_hold", "packages", "pcie_facts", "preflight", "qos", "qos_facts", "rdma", "rdma_facts", "report", "resolve_stack",
