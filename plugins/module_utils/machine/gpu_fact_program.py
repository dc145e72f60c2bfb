# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that prints gpu_node as JSON: a local fact of every setup."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import sys

from .deadline import SECONDS, measure_within
from .files import FileTree
from .nvml import DEFAULT_LIBRARY


def main(dummy_arguments, sysfs="/sys", procfs="/proc", library=DEFAULT_LIBRARY):
    """Print the model; 0."""
    node = measure_within(SECONDS, FileTree(sysfs), FileTree(procfs), library)
    sys.stdout.write(json.dumps(node, sort_keys=True) + "\n")
    return 0
