# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.versions import (
    meets,
    python_satisfies,
    requirement,
    satisfies,
)


@pytest.mark.parametrize(
    ("installed", "planned", "expected"),
    [
        ("535.309.01-1", "535.309.01-1", True),
        ("535.309.01-1", "535.309.01-2", False),
        ("535.309.01-1", "535.309.01-*", True),
        ("535.309.01-1", "535.309.01", False),
        ("535.309.01-1", "535.309.1-*", False),
        ("570.195.03-0ubuntu1", "570.195.03-[01]ubuntu1", True),
        ("570.195.03-2ubuntu1", "570.195.03-[01]ubuntu1", False),
        # Any version, and none.
        ("535.309.01-1", None, True),
        (None, None, False),
        (None, "*", False),
        # An epoch counts only where the plan names one.
        ("1:535.309.01-1", "535.309.01-1", True),
        ("3:535.309.01-1", "535.309.01-*", True),
        ("1:535.309.01-1", "535.309.01-2", False),
        ("3:580.178.04-1.el9", "3:580.178.04-*", True),
        ("580.178.04-1.el9", "3:580.178.04-*", False),
        ("2:580.178.04-1.el9", "3:580.178.04-*", False),
        ("580.178.04-1.el9", "0:580.178.04-*", True),
        ("1:580.178.04-1.el9", "0:580.178.04-*", False),
        ("0:580.178.04-1.el9", "580.178.04-*", True),
        ("git:580.178.04", "580.178.04", False),
    ],
)
def test_versions_of_packages(installed, planned, expected):
    assert satisfies(installed, planned) is expected


@pytest.mark.parametrize(
    ("installed", "planned", "expected"),
    [
        ("3.11.2", "3.11", True),
        ("3.11", "3.11", True),
        ("3.11.2", "3.1", False),
        ("3.1.11", "3.1", True),
        ("3.11", "3.11.2", False),
        ("3.11.2", "3.11.2", True),
        ("", "3.11", False),
        (None, "3.11", False),
    ],
)
def test_versions_of_python(installed, planned, expected):
    assert python_satisfies(installed, planned) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch==2.14.1", ("torch", "==2.14.1")),
        ("Typing_Extensions", ("typing-extensions", "")),
        ("tensorflow[and-cuda]==2.21.0", ("tensorflow", "==2.21.0")),
        ("numpy<2; python_version < '3.13'", ("numpy", "<2")),
        ("horovod @ https://example.org/horovod.whl", ("horovod", "")),
        ("--no-deps", None),
        ("https://example.org/horovod.whl", None),
    ],
)
def test_requirements(line, expected):
    assert requirement(line) == expected


@pytest.mark.parametrize(
    ("installed", "line", "expected"),
    [
        ("2.13.0", "torch==2.13.0", True),
        ("2.13.0+cpu", "torch==2.13.0", True),
        ("2.13.0+cpu", "torch==2.13.0+cu126", False),
        ("2.13", "torch==2.13.0", True),
        ("2.13.1", "torch==2.13.0", False),
        ("2.13.1", "torch==2.13.*", True),
        ("2.15.0rc1", "torch>=2.14", True),
        ("1.26.4", "numpy<2", True),
        ("2.0.0", "numpy<2", False),
        ("0.0.1", "numpy", True),
        (None, "numpy", False),
        ("not a version", "numpy<2", False),
    ],
)
def test_versions_of_python_packages(installed, line, expected):
    assert meets(installed, line) is expected
