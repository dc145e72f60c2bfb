# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the package index said of some releases."""

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release, wheels

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def lock():
    """The wheels of torch 2.6.0, as uv names them."""
    return (RECORDED / "torch-2.6.0.toml").read_text(encoding="utf-8")


@pytest.fixture
def requires():
    """What releases require, by name and version."""
    return yaml.safe_load((RECORDED / "requires.yml").read_text(encoding="utf-8"))


@pytest.fixture
def release(lock, requires):
    """Return PyTorch 2.6.0."""
    return Release("2.6.0", wheels(lock), tuple(requires["torch-2.6.0"]), {"torchvision": "0.21.0"})
