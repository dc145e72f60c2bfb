#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gpu_health
short_description: Check the health of a node's GPUs and the consistency of their driver
version_added: 0.1.0
description:
  - Measures the node as M(allreduce.gpu.gpu_facts) does, reads error counters, the kernel log and the state of the machine around the
    GPUs, and gives one verdict with its findings. Changes nothing.
  - What cannot be known is a finding of severity V(unknown); it never counts as healthy, and makes no known verdict worse.
  - What each check finds, which verdict that gives and what to do then is in one table, C(docs/health.md).
  - An idle GPU lowers its PCIe generation, so that is judged only while the GPU works at its highest clocks. What GPU and slot support is
    compared with the other GPUs of the model.
  - The verdict does not fail the task. Let C(failed_when) decide what is tolerable.
  - The node keeps the module's code as compiled, in C(/var/cache/allreduce) for root and in C(~/.cache/allreduce) for another user.
author: "The allreduce.gpu authors (@allreduce)"
extends_documentation_fragment: [allreduce.gpu.measured_machine]
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
options:
  skip_checks:
    description:
      - Codes of checks to skip. RV(skipped_checks) lists them, so that a skipped check is never taken for one that passed.
    type: list
    elements: str
    default: []
    choices:
      - module_loaded
      - driver_library
      - nvml
      - fabric
      - gpu_count
      - gpu_answers
      - pcie_width
      - pcie_generation
      - aer_errors
      - nvlinks
      - p2p_access
      - ecc_errors
      - row_remapping
      - page_retirement
      - aggregate_errors
      - sram_errors
      - spare_rows
      - nvlink_errors
      - pcie_replays
      - temperature
      - recovery_action
      - inforom
      - stale_processes
      - xid
      - throttling
      - persistence_mode
      - pending_modes
      - peer_model
      - peer_power_limit
      - peer_clocks
      - peer_vbios
      - peer_inforom
      - peer_memory
      - peer_mig_mode
      - peer_ecc_mode
      - peer_application_clocks
      - peer_compute_mode
      - peer_temperature
      - memory_size
      - cpu_count
      - memory_errors
      - machine_checks
      - oom_kills
      - nccl_settings
      - kernel_clock
      - disks
      - nvme_health
      - network_mounts
      - nic_ports
      - nic_errors
      - peer_driver
      - nic_firmware
      - other_problems
  gpu_count:
    description: Number of GPUs that the node must have. By default it is not checked.
    type: int
  max_uncorrected_errors:
    description: Maximum number of uncorrected memory errors of a GPU since the driver was loaded.
    type: int
    default: 0
  max_corrected_errors:
    description: Maximum number of corrected memory errors of a GPU since the driver was loaded.
    type: int
    default: 50000000
  max_remapped_rows:
    description:
      - Maximum number of memory rows remapped for uncorrectable errors. By default it is not checked.
      - Remapping that failed or waits for a reset, and 512 rows, which is all that a GPU can remap, are always a finding.
    type: int
  max_aggregate_errors:
    description: Maximum number of uncorrected memory errors in the lifetime of a GPU. By default it is not checked.
    type: int
  max_exhausted_banks:
    description: Maximum number of memory banks of a GPU without a spare row.
    type: int
    default: 0
  max_nvlink_replays:
    description: Maximum number of replays that the NVLinks of a GPU have counted since they started.
    type: int
    default: 0
  max_nvlink_recoveries:
    description: Maximum number of recoveries that the NVLinks of a GPU have counted since they started.
    type: int
    default: 0
  max_nvlink_crc_errors:
    description:
      - >-
          Maximum number of CRC errors that the NVLinks of a GPU have counted since they started. By default it is not checked, since links correct
          them, and the rate of a healthy link is not known.
    type: int
  max_pcie_replays:
    description:
      - >-
          Maximum number of replays that a GPU's PCIe link has counted. By default, the number that a bit error rate of 10^-12 allows for the link at
          full speed in the time since boot.
    type: int
  temperature_margin:
    description:
      - Degrees Celsius below its limit from which a GPU counts as too hot. The limit is the temperature at which its hardware slows down.
    type: int
    default: 2
  memory_mib:
    description:
      - Memory in MiB that the node must have, as C(MemTotal) of C(/proc/meminfo) counts it. By default it is not checked.
    type: int
  cpu_count:
    description: Number of logical processors that must be online. By default it is not checked.
    type: int
  max_corrected_memory_errors:
    description:
      - Maximum number of corrected errors of the node's memory since the driver of its controller was loaded. By default it is not checked.
    type: int
  oom_minutes:
    description: Minutes for which a process killed for lack of memory is a finding. V(0) disables the check.
    type: int
    default: 60
  max_aer_fatal:
    description: Maximum number of fatal errors that the two ends of a GPU's PCIe link have reported to the kernel since boot.
    type: int
    default: 0
  max_aer_nonfatal:
    description: Maximum number of uncorrectable errors that are not fatal, likewise. By default it is not checked.
    type: int
  max_clock_offset_ms:
    description:
      - Maximum offset in milliseconds that the kernel still has to correct in the clock. It is unknown where nothing synchronises the clock.
    type: int
    default: 50
  nvme_used_percent:
    description:
      - Percentage of its rated endurance from which an NVMe drive counts as worn, as the drive itself reports.
    type: int
    default: 100
  max_nvme_media_errors:
    description: Maximum number of media errors in the lifetime of an NVMe drive.
    type: int
    default: 0
  nic_ports:
    description: Number of adapter ports that must be up, with at least O(nic_rate_gbps) where that is set. By default it is not checked.
    type: int
  nic_rate_gbps:
    description:
      - >-
          Rate in Gbit/s that these ports must have or, without O(nic_ports), every port of the training network. By default, rates are only compared
          with each other.
    type: int
  ignored_xids:
    description:
      - Xid events in the kernel log to ignore. By default none is, but those of class V(application), which restarting the application
        resolves, are only among the RV(notes).
      - Only events of the last load of the driver and after it count, and only those after the last reset of the GPU or of the
        NVSwitches that the log tells, or after the driver last withdrew its demand for a recovery of the GPU.
    type: list
    elements: int
  persistence:
    description: Report disabled persistence mode as a finding.
    type: bool
    default: true
  kernel_log:
    description:
      - Path of the kernel log. Where the default no longer has its beginning, the messages of this boot are taken from the journal.
    type: path
    default: /dev/kmsg
  root:
    description: Directory to read in place of the root directory, to examine a recorded machine. Sysfs and procfs have options of their own.
    type: path
    default: /
  seconds:
    description:
      - Seconds after which a driver that has not answered counts as hanging. RV(verdict) is then V(unknown) by check C(nvml),
        whatever O(skip_checks) says, and a process that hangs in the kernel stays behind on the node.
    type: int
    default: 60
  record:
    description:
      - A directory on the node, absent or empty, into which everything that was read is written, so that the node can be examined
        elsewhere and becomes a test of this collection. Not in check mode.
      - C(sys), C(proc) and C(root) in it are for the options of these names, C(kmsg) for O(kernel_log), and C(profile) is what NVML
        answered. Of files that set environments only lines with C(NCCL_) are kept, of the kernel log those that the checks know.
    type: path
"""

EXAMPLES = r"""
- name: Write all that is read of a node that is judged wrongly, to send it along with a report
  allreduce.gpu.gpu_health:
    record: /root/gpu-7
  become: true

- name: Judge the GPUs
  allreduce.gpu.gpu_health:
    gpu_count: 8
  become: true
  register: node_health
  failed_when: node_health.verdict == 'failed'
"""

RETURN = r"""
verdict:
  description:
    - The worst of the findings, V(ok), V(unknown), V(degraded), V(reboot_required) or V(failed).
    - V(unknown) where nothing is known to be wrong and something could not be judged, such as without NVML's binding.
  returned: success
  type: str
  sample: degraded
findings:
  description: What is not as it should be, or not known.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: What was judged.
      type: str
      sample: throttling
    gpu:
      description: Name of the GPU as in the topology, null where the finding is not about one.
      type: str
      sample: GPU3
    expected:
      description: Expected value.
      type: raw
    measured:
      description: Measured value, null where it is not known.
      type: raw
    severity:
      description: One of V(degraded), V(reboot_required), V(failed) and V(unknown).
      type: str
    cause:
      description: Why it is so, as far as it is known.
      type: str
      sample: the GPU is at its own temperature limit
    action:
      description: What to do.
      type: str
    action_class:
      description:
        - The same for programs. V(configure) is fixed by software or settings of the node, V(application) by its user; V(monitor) needs a
          person to look; V(reset), V(reboot) and V(isolate) mean the GPU's reset, the node's reboot, or that the node is taken out of
          service.
      type: str
notes:
  description:
    - What is worth telling and no fault of the node, such as an Xid that an application caused, or processes killed for lack of memory.
      RV(verdict) does not depend on it.
    - As RV(findings), with the severity V(note).
  returned: success
  type: list
  elements: dict
judged:
  description: What was judged, including what is as it should be. What does not apply to this node is left out.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: What was judged; the name that its findings have.
      type: str
      sample: persistence_mode
    category:
      description: V(coherence) or V(health).
      type: str
    expected:
      description: Expected value.
      type: raw
    measured:
      description: Measured value, where there are no findings; the notes, where there are some.
      type: raw
skipped_checks:
  description: Codes of the checks that apply to this node and that O(skip_checks) left out.
  returned: success
  type: list
  elements: str
counters:
  description: What each GPU counts, by its name in the topology; null for a GPU that does not answer.
  returned: success
  type: dict
  sample:
    GPU0:
      uncorrected_errors: 0
      corrected_errors: 0
      remapped_rows: {correctable: 0, uncorrectable: 0, pending: 0, failed: 0}
      retired_pages_pending: null
      retired_pages: null
      sram: {threshold_exceeded: false, uncorrected: 0}
      spare_rows: {max: 640, high: 0, partial: 0, low: 0, none: 0}
      clock_reasons: [idle]
      performance_state: 0
      application_clocks: {graphics: 1980, memory: 2619}
      temperature: 34
      temperature_margin: 53
      temperature_limit: null
      slowdown_margin: -2
      shutdown_margin: -8
      shutdown_temperature: null
      memory_temperature: 40
      memory_temperature_limit: null
      inforom_valid: true
      processes: [{pid: 4711, memory_mib: 1024}]
      aggregate_errors: 0
      pcie_replays: 0
      recovery_action: 0
      nvlink_errors: {replays: 0, recoveries: 0, crc_errors: 0}
      nvml_errors: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.machine.archive import compile_once


def main():
    """Read the options, measure, judge, answer."""
    compile_once("gpu_health")
    from ..module_utils.health.check_table import CODES_AT_ONCE, OPTIONS
    from ..module_utils.health.deadline import within
    from ..module_utils.health.examination import Places, examine, examine_and_record
    from ..module_utils.machine.files import FileTree

    module = AnsibleModule(
        argument_spec=dict(
            OPTIONS,
            skip_checks={"type": "list", "elements": "str", "default": [], "choices": list(CODES_AT_ONCE)},
            kernel_log={"type": "path", "default": "/dev/kmsg"},
            root={"type": "path", "default": "/"},
            record={"type": "path"},
            seconds={"type": "int", "default": 60},
            sysfs_root={"type": "path", "default": "/sys"},
            procfs_root={"type": "path", "default": "/proc"},
            nvml_library={"type": "str", "default": "libnvidia-ml.so.1"},
        ),
        supports_check_mode=True,
    )
    options = module.params
    trees = [FileTree(options[name]) for name in ("sysfs_root", "procfs_root", "root")]
    places = Places(*trees, library=options["nvml_library"], log=options["kernel_log"])
    place = None if module.check_mode else options["record"]
    try:
        found = within(
            options["seconds"],
            lambda: examine_and_record(places, options, place) if place else examine(places, options),
        )
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="Cannot examine the machine: %s." % error)
    module.exit_json(changed=bool(place), **found)


if __name__ == "__main__":
    main()
