# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment that .ci/bootstrap makes, in which these tests run."""

import importlib.util
from pathlib import Path

import ansible.cli.playbook
import jinja2.environment
import pytest


@pytest.mark.parametrize("module", [ansible.cli.playbook, jinja2.environment], ids=lambda module: module.__name__)
def test_bytecode_is_compiled(module):
    """Or each start of ansible-playbook takes about a second more, where PYTHONDONTWRITEBYTECODE is set."""
    assert Path(importlib.util.cache_from_source(module.__file__)).is_file()
