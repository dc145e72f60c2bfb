# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks of a GPU by its model, and their use: what its peers show says nothing of a loss that all share."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Modules have all their links in use where the board's switches are on the bus, or where at least this number of them are there: fewer may
# be a part of a board in a virtual machine. ``step``: links of one bridge between two cards; a card has none, one or several bridges,
# and no part of one. What is not here is compared with its peers only.
GUIDE = "NVIDIA Fabric Manager User Guide (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide), "
# (NVML's name, links, least, step, source)
ROWS = (
    (r"P100-SXM", 4, 8, None, "blog.exxactcorp.com/gpu-gpu-connectivity-works-nvlink: 8 P100, four interconnects each"),
    (r"V100-SXM2", 6, 8, None, "github.com/Azure/azhpc-diagnostics/issues/73: nvidia-smi nvlink -s"),
    (r"V100-SXM3", 6, 16, None, GUIDE + "NVSwitch-Based Systems: one to each of six; Partitions: five in those across boards"),
    (r"A100-SXM", 12, 4, None,
     GUIDE + "NVSwitch-Based Systems: two to each of six; boards of four: github.com/NVIDIA/nccl-tests/issues/331, NV4 to each of three"),
    (r"A800-SXM", 8, 8, None, "github.com/liguodongiot/llm-action docs/llm-base/a800-env-install.md: nvidia-smi topo, NV8"),
    (r"H800$", 8, 8, None, GUIDE + "The NVIDIA HGX H800 GPU Baseboard: two to each of four"),
    (r"H100 80GB HBM", 18, 4, None,
     GUIDE + "The NVIDIA HGX H100 GPU Baseboard; boards of four: github.com/NVIDIA/nccl/issues/1617, NV6 to each of three"),
    (r"H200$|H20$", 18, 4, None, GUIDE + "The NVIDIA HGX H100 GPU Baseboard: H200 and H20 are the same; GPU Partitions of 4: 18"),
    (r"\bB[23]00\b", 18, 8, None, GUIDE + "The NVIDIA HGX B200/B300 GPU Baseboard: nine to each of two"),
    (r"\bGB[23]00\b", 18, 4, None, "docs.nvidia.com/health-validation/reference/checks/nvlink: expected_link_count"),
    (r"A40$|RTX A(4500|5000|5500|6000)$|RTX 3090$", None, None, 4,
     "NVIDIA Ampere GA102 GPU Architecture whitepaper: four links between two GPUs; pci.ids: these are GA102"),
    (r"A30$", None, None, 4, "github.com/vllm-project/vllm/issues/29070: nvidia-smi topo, NV4"),
    (r"A100.*PCI", None, None, 4, "news.pny.eu/it/2021/04/choosing-the-right-nvlink-bridge: the bridge of RTX A6000"),
)  # fmt: skip
MODELS = tuple(row[:4] for row in ROWS)  # patterns are compiled when a name is looked for, and not all
# A board has eight GPUs and six or four NVSwitches on the bus (the guide's NVSwitch-Based Systems); a virtual machine with two or four of
# the GPUs gets at most three, a part of the links, and not the same number on each GPU (Full Passthrough Virtualization Model).
SWITCHES_OF_A_BOARD = 4
GPUS_OF_A_PART = 4


# MB/s of a link in one direction: https://docs.nvidia.com/health-validation/reference/checks/nvlink (H100, GB200 and GB300), and
# as "nvidia-smi nvlink --status" shows them: github.com/Azure/azhpc-diagnostics/issues/73 (V100), github.com/NVIDIA/nccl-tests/issues/228
# and github.com/NVIDIA/nccl/issues/1054 (A100). What is not here is compared with its peers only.
SPEEDS = (
    (r"V100-SXM2", 25781),
    (r"A100-SXM", 25000),
    (r"H100 80GB HBM", 26562),
    (r"\bGB[23]00\b", 53125),
)


def speed_of(name):
    """Return the speed that a link of the model must have; None where that is not known."""
    return next((speed for pattern, speed in SPEEDS if name and re.search(pattern, name)), None)


def model_of(name):
    """Return (links, least, step) of a GPU's name; (None, None, None) for a model that is not here."""
    return next((row[1:] for row in MODELS if name and re.search(row[0], name)), (None, None, None))


def is_part_of_a_board(gpus, switches):
    """Return True if a virtual machine has some GPUs and NVSwitches of a board: then the number of links they should have is not known."""
    return 0 < switches < SWITCHES_OF_A_BOARD and len(gpus) <= GPUS_OF_A_PART


def expected_links(gpus, switches):
    """Return {index: how many links must be active}, None where that is not known; ``gpus``: those that answer.

    ``switches``: how many NVSwitches are on the bus.
    """
    found = {}
    for gpu in gpus:
        links, least, step = model_of(gpu["name"])
        expected = None
        if step:
            expected = -(-count_active(gpu) // step) * step
        elif links and (switches or len([one for one in gpus if one["name"] == gpu["name"]]) >= least):
            expected = links
        found[gpu["index"]] = expected
    return found


def count_active(gpu):
    return len([link for link in gpu["nvlinks"] if link["active"]])
