# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems of a machine (``gpu_node.findings``), for people who read facts, checks and reports.

Nothing is decided by these sentences: code reads the records.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .fabric_health import CODES

SENTENCES = {
    "acs_redirect": "PCIe ACS redirects peer-to-peer traffic at bridge {subject}",
    "driver_mismatch": "Driver version mismatch: kernel module {loaded}, user-space library {library}",
    "fabric_apart": "{subject} is in domain or partition {domain} of the NVLink fabric, most of the node's GPUs are in {expected}",
    "fabric_not_ready": "The NVLink fabric is {state}; CUDA cannot start until the fabric manager has configured it",
    "fabric_split": "The node's GPUs are in several domains or partitions of the NVLink fabric: {domains}",
    "fabric_unhealthy": "The NVLink fabric reports for {subject}: {health}",
    "gpu_failing": "NVML reports for {subject}: {error}",
    "gpu_held": "GPU {subject} is bound to driver {driver} and not visible to NVML",
    "gpu_not_in_nvml": "GPU {subject} is on the PCI bus but not visible to NVML",
    "gpu_not_on_bus": "{subject} ({pci_bus_id}) is visible to NVML but not on the PCI bus",
    "gpu_not_opened": "NVML cannot open {subject}: {reason}",
    "nic_without_rdma": "Adapter {subject} has no RDMA device; its driver is {driver}",
    "nvlinks_inactive": "{subject} has {active} active NVLinks, not {expected}",
    "nvlinks_slow": "{subject} has {links} slow NVLinks, the slowest with {speed} of {expected} MB/s",
    "nvml_unavailable": "Kernel module {loaded} is loaded but NVML is not available: {reason}",
    "pcie_link_narrow": "{subject} has a PCIe x{width} link but supports x{max_width}",
    "rail_down": "{subject} port {port} is {state}, while its peers run at {expected} Gbit/s: {peers}",
    "rail_slow": "{subject} port {port} runs at {rate} Gbit/s, while its peers run at {expected} Gbit/s: {peers}",
    # Why NVML cannot be asked; what else it says of itself is its own sentence.
    "library_missing": "library {library} not found",
    "nvml_crashed": "asking it ended with {ending}",
    "nvml_hanging": "the driver did not answer within {seconds} seconds",
    "pynvml_missing": "pynvml is not installed; role allreduce.gpu.base installs it in {directory}",
}
WORDS = {
    "not_started": "not started",
    "in_progress": "still starting",
    # What NVML's errors mean, after nvml.h.
    "gpu_lost": "it has fallen off the bus or is otherwise inaccessible",
    "reset_required": "it must be reset before it can be used again",
    "timeout": "the driver did not answer in time",
    "insufficient_power": "its power cables are not properly attached",
    "unknown_error": "an internal error of the driver",
    "irq_issue": "the kernel has trouble with its interrupts",
    "corrupted_inforom": "its InfoROM is corrupted",
}
WORDS.update((code, words) for code, (dummy_severity, words) in CODES.items())


def describe(problem):
    """Return the sentence for a problem, without a full stop."""
    values = {key: WORDS.get(value, value) for key, value in problem["detail"].items()}
    sentence = SENTENCES.get(problem["code"])
    return sentence.format(subject=problem["subject"], **values) if sentence else values["reason"]
