# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of module gpu_settings and of the program on a node: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import OrderedDict

# What is wrong with a declaration; subject is a setting.
DECLARATION = {
    "not_a_list": "The declaration is {value!r}; give a list of dictionaries.",
    "unknown_setting": "There is no setting {subject}; choose from {settings}.",
    "not_a_switch": "{subject} is {value!r}; give true or false.",
    "not_a_compute_mode": "{subject} is {value!r}; give one of {modes}.",
    "not_watts": "{subject} is {value!r}; give a number of watts, or default.",
    "not_a_clock_pair": "{subject} is {value!r}; give {{memory: MHz, graphics: MHz}}, or default.",
    "not_clock_domains": "{subject} is {value!r}; give graphics, memory or both, or default.",
    "not_a_clock_range": "{subject} is {value!r}; give {{min: MHz, max: MHz}}, or one clock in MHz.",
    "inverted_range": "{subject} has min {low} above max {high}.",
    "not_megahertz": "A clock of {subject} is {value!r}; give a number of MHz.",
}
# What a node or one of its GPUs cannot do; subject is the GPU, of gpu_not_found the selector.
GPUS = {
    "no_gpu": "NVML shows no GPU on this node; see the problems that gpu_facts reports.",
    "gpu_not_found": "This node has no GPU {subject}; it has {present}.",
    "gpu_not_opened": "GPU {index} does not answer: {reason}.",
    "not_supported": "{setting} is not supported.",
    "no_application_clocks": "application_clocks are not supported; use locked_clocks.",
    "out_of_range": "{setting} {value} is out of range; give {low} to {high}.",
    "clock_not_supported": "{setting}.{domain} {value} MHz is not supported; give {clocks}.",
    "not_changed": "{setting} cannot be changed: {reason}.",
}


def describe(problem):
    """Return the sentence for a problem of a declaration, of a node or of a GPU."""
    code, detail = problem["code"], dict(problem["detail"])
    if code in DECLARATION:
        return DECLARATION[code].format(subject=problem["subject"], **detail)
    if isinstance(detail.get("value"), list):
        detail["value"] = "%d to %d" % tuple(detail["value"])
    if detail.get("cause") == "no_permission":
        detail["reason"] = "this needs root"
    if "clocks" in detail:
        detail["clocks"] = _offer(detail["clocks"])
    text = GPUS[code].format(subject=problem["subject"], **detail)
    return "GPU %s (%s): %s" % (detail["index"], detail["name"], text) if "name" in detail else text


def _offer(clocks):
    """A handful of memory clocks is named one by one; there are a hundred graphics clocks."""
    if len(clocks) <= 8:
        return "one of %s" % ", ".join(map(str, clocks))
    steps = {high - low for low, high in zip(clocks, clocks[1:])}
    return "%d to %d" % (clocks[0], clocks[-1]) + (" in steps of %d" % steps.pop() if len(steps) == 1 else "")


def describe_resets(waiting):
    """Return one sentence for all GPUs of a model that wait for the same reset (see plan.resets)."""
    text = "%s turns %s only after a reset of the GPU or a reboot."
    return _together((one, text % (one["setting"], "on" if one["wanted"] else "off")) for one in waiting)


def describe_forgetful(lost):
    """Return one sentence for all GPUs of a model that lose the same settings (see plan.forgetful)."""
    text = "settings that last only while a program uses the GPU: %s; declare persistence_mode: true."
    return _together((one, text % ", ".join(one["settings"])) for one in lost)


def _together(said):
    """[(gpu, text)] → ["GPU 0, 1 (name): text"]."""
    groups = OrderedDict()
    for gpu, text in said:
        groups.setdefault((gpu["name"], text), []).append(str(gpu["index"]))
    return ["GPU %s (%s): %s" % (", ".join(indices), name, text) for (name, text), indices in groups.items()]
