# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import DkmsBuild, Kernel
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.kernels import (
    built_for,
    kernels_that_matter,
    module_version,
)

OLD, A, B = "6.1.0-9-amd64", "6.1.0-39-amd64", "6.1.0-40-amd64"
ALL = (OLD, A, B)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel(running=A, installed=ALL, newest=B), [A, B]),
        (Kernel(running=B, installed=ALL, newest=B), [B]),
        (Kernel(running=A, installed=ALL, newest=B, next_boot=OLD), [A, OLD]),
        (Kernel(running=A, installed=ALL, newest=B, next_boot=A), [A]),
        (Kernel(running=A, installed=ALL, newest=None), [A]),
        # What runs was removed: the next boot takes another.
        (Kernel(running=A, installed=(OLD, B), newest=B), [B]),
        (Kernel(running=None, installed=(B,), newest=B), [B]),
        # A container runs its host's.
        (Kernel(running="host", headers=(A, B)), [B]),
        (Kernel(running="host"), []),
        (Kernel(), []),
    ],
)
def test_kernels_that_must_have_the_module(kernel, expected):
    assert kernels_that_matter(kernel) == expected


def build(version, kernel=None, status="installed", module="nvidia"):
    return DkmsBuild(module, version, kernel, "x86_64", status)


@pytest.mark.parametrize(
    ("builds", "planned", "expected"),
    [
        ((), "535.*", None),
        ((build("535.309.01"),), "535.309.01", "535.309.01"),
        ((build("535.261.03"),), "535.309.01", None),
        ((build("535.261.03", A), build("535.309.01", None, "added")), "535.*", "535.309.01"),
        ((build("535.99.1"), build("535.261.03")), "535.*", "535.261.03"),
        ((build("550.1"), build("535.261.03")), "535.*", "535.261.03"),
        ((build("535.309.01", module="nvidia-current"),), "535.*", None),
    ],
)
def test_the_newest_planned_version_that_dkms_knows(builds, planned, expected):
    assert module_version(builds, "nvidia", planned) == expected


@pytest.mark.parametrize(
    ("builds", "expected"),
    [
        ((build("1", A),), "1"),
        ((build("1", B),), None),
        ((build("1", A, "built"),), None),
        ((build("1", None, "added"),), None),
        ((build("1", A, module="zfs"),), None),
        ((build("1", A, "built"), build("2", A)), "2"),
    ],
)
def test_only_an_installed_build_counts(builds, expected):
    assert built_for(builds, "nvidia", A) == expected
