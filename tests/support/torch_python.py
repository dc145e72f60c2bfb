# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An interpreter with PyTorch, for tests of programs that run in a training environment."""

import importlib.util
import os
import sys

import pytest


def torch_python():
    """Return the interpreter that ALLREDUCE_TORCH_PYTHON names, or this one where it has PyTorch; skip the test without either."""
    named = os.environ.get("ALLREDUCE_TORCH_PYTHON")
    if not named and importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch here: name an interpreter that has it in ALLREDUCE_TORCH_PYTHON")
    return named or sys.executable
