# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a machine whose driver may hang: NVML waits for it in the kernel, where no signal reaches who asked."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from contextlib import contextmanager

from .child import bounded
from .gpu_node import measure
from .pci_names import DATABASES
from .problems import problem

# As module gpu_health waits: far more than a driver needs, which opens GPUs one after the other without persistence mode.
SECONDS = 60


def measure_within(seconds, sys_tree, proc_tree, library, databases=DATABASES):
    """Return gpu_node; without NVML where that does not answer in the given seconds or ends its process, which it says."""
    said, ending = bounded(lambda say: say(measure(sys_tree, proc_tree, library, databases)), seconds)
    if ending == "done":
        return said[0]
    if ending == "failed":  # here it raises what it raised there
        return measure(sys_tree, proc_tree, library, databases)
    hanging = ending == "timeout"
    reason = problem("nvml_hanging", seconds=seconds) if hanging else problem("nvml_crashed", ending=ending)
    return measure(sys_tree, proc_tree, library, databases, _without(reason))


def _without(reason):
    """Return a context manager in place of the one that opens NVML, which gives only the reason why NVML is not there."""

    @contextmanager
    def opener(dummy_library):
        yield None, reason

    return opener
