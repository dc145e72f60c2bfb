#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gpu_settings
short_description: Set persistence, power limit, compute mode, ECC, MIG mode and clocks of GPUs
version_added: 0.1.0
description:
  - Brings the GPUs of a node to what is declared. A setting that is not declared stays as it is.
  - Nothing is changed where a GPU refuses a value; the failure names the range that it accepts.
  - Most settings are forgotten at the next boot. Role P(allreduce.gpu.gpu_settings#role) then applies them again.
author: "The allreduce.gpu authors (@allreduce)"
requirements:
  - a loaded NVIDIA driver
  - the Python module C(pynvml), which role P(allreduce.gpu.base#role) puts on the node
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows each GPU's settings before and after.
    support: full
options:
  gpus: &gpus
    description:
      - GPUs to which the settings apply, by NVML's index, UUID, PCI address, or words of the model's name (V(A100), V(RTX 3090)).
      - Defaults to all GPUs of the node. For models that the node does not have, there is a warning only.
    type: list
    elements: str
  persistence_mode: &persistence_mode
    description: Keep the GPU initialised while nothing uses it.
    type: bool
  power_limit_watts: &power_limit_watts
    description: Power limit in watts, or V(default) for the GPU's own.
    type: raw
  compute_mode: &compute_mode
    description: Number of processes that may use the GPU at the same time, any, one, or none.
    type: str
    choices: [default, exclusive_process, prohibited]
  ecc: &ecc
    description: Enable correction of memory errors. Takes effect after a reset of the GPU or a reboot.
    type: bool
  mig_mode: &mig_mode
    description: Enable partitioning of the GPU. Takes effect at once only where nothing uses the GPU.
    type: bool
  application_clocks: &application_clocks
    description: Clocks in MHz that programs run at, C({memory, graphics}), or V(default) for the GPU's own.
    type: raw
  locked_clocks: &locked_clocks
    description:
      - Clocks in MHz that the GPU is held at, C(graphics) and C(memory), one or both, each a number or C({min, max});
        or V(default) to release them.
      - >-
          NVML does not report to what clocks are locked, so the module records what it set until the driver is reloaded, and does not see what other
          programs lock.
    type: raw
  declaration:
    description:
      - Several declarations in one step, instead of the options above. Later ones take precedence.
    type: list
    elements: dict
    suboptions:
      gpus: *gpus
      persistence_mode: *persistence_mode
      power_limit_watts: *power_limit_watts
      compute_mode: *compute_mode
      ecc: *ecc
      mig_mode: *mig_mode
      application_clocks: *application_clocks
      locked_clocks: *locked_clocks
  nvml_library:
    description: Name or path of the NVML library of the driver.
    type: str
    default: libnvidia-ml.so.1
  locked_clocks_path:
    description: File that records locked clocks. It must be on a file system that is empty after a boot.
    type: path
    default: /run/allreduce/locked_clocks.json
"""

EXAMPLES = r"""
- name: Keep all GPUs initialised, and limit their power
  allreduce.gpu.gpu_settings:
    persistence_mode: true
    power_limit_watts: 300

- name: Declare all GPUs and an exception
  allreduce.gpu.gpu_settings:
    declaration:
      - persistence_mode: true
        compute_mode: exclusive_process
      - gpus: [0]
        compute_mode: default
      - gpus: [A100]
        application_clocks: {memory: 1215, graphics: 1410}
      - gpus: [H100]
        locked_clocks: {graphics: {min: 1410, max: 1755}}
"""

RETURN = r"""
gpus:
  description:
    - The GPUs that something is declared for, with C(index), C(uuid), C(name), C(pci_bus_id), C(changes) and
      C(reset_required), the settings that wait for a reset of the GPU or a reboot.
  returned: success, and when a GPU refuses a value
  type: list
  elements: dict
  sample:
    - index: 0
      uuid: GPU-07000000-0000-4000-8000-000000070000
      name: NVIDIA A100-SXM4-40GB
      pci_bus_id: 0000:07:00.0
      changes: {power_limit_watts: {before: 400, after: 300}}
      reset_required: []
reset_required:
  description: Whether a setting takes effect only after a reset of a GPU or a reboot. Warnings name the settings.
  returned: success, and when a GPU refuses a value
  type: bool
findings:
  description:
    - Why it failed, for programs. Decide by C(code).
    - C(subject) is the GPU, or what O(declaration[].gpus) names and the node does not have; C(detail) has the values.
  returned: success, and when a GPU refuses a value
  type: list
  elements: dict
  sample:
    - code: out_of_range
      subject: GPU0
      detail: {index: 0, name: NVIDIA A100-SXM4-40GB, setting: power_limit_watts, value: 500, low: 100, high: 400}
problems:
  description: Why it failed, one sentence for each of C(findings).
  returned: success, and when a GPU refuses a value
  type: list
  elements: str
cause:
  description: Code of what is wrong with the declaration, or why no driver answers.
  returned: when the declaration is invalid, or no driver answers
  type: str
  sample: not_watts
driver_installed:
  description: Whether a driver is installed that only has to be loaded.
  returned: when no driver answers
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.settings.declaration import DeclarationError, parse
from ..module_utils.settings.gpu_settings import LockedClocks, NoDriver, settle

SETTINGS = {
    "gpus": {"type": "list", "elements": "str"},
    "persistence_mode": {"type": "bool"},
    "power_limit_watts": {"type": "raw"},
    "compute_mode": {"type": "str", "choices": ["default", "exclusive_process", "prohibited"]},
    "ecc": {"type": "bool"},
    "mig_mode": {"type": "bool"},
    "application_clocks": {"type": "raw"},
    "locked_clocks": {"type": "raw"},
}


def main():
    """Read, plan, apply; what of it is done in check mode is settle's business."""
    options = dict(
        SETTINGS,
        declaration={"type": "list", "elements": "dict", "options": SETTINGS},
        nvml_library={"type": "str", "default": "libnvidia-ml.so.1"},
        locked_clocks_path={"type": "path", "default": "/run/allreduce/locked_clocks.json"},
    )
    module = AnsibleModule(
        argument_spec=options,
        mutually_exclusive=[("declaration", name) for name in SETTINGS],
        supports_check_mode=True,
    )
    given, locked = module.params, LockedClocks(module.params["locked_clocks_path"])
    declaration = given["declaration"]
    if declaration is None:
        declaration = [{name: given[name] for name in SETTINGS}]
    try:
        answer = settle(parse(declaration), given["nvml_library"], locked, module.check_mode)
    except DeclarationError as error:
        module.fail_json(msg=str(error), cause=error.problem["code"])
    except NoDriver as error:
        module.fail_json(msg=str(error), cause=error.code, driver_installed=error.installed)
    except EnvironmentError as error:
        module.fail_json(msg="Locked clocks cannot be recorded in %s: %s." % (locked.path, error))
    for warning in answer.pop("warnings"):
        module.warn(warning)
    if answer["problems"]:
        module.fail_json(msg=" ".join(answer["problems"]), **answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
