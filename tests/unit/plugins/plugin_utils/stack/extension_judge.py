# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a stack that has a framework that stands on PyTorch: read from its table, without the resolver."""

from __future__ import annotations

import checker
from packaging.specifiers import SpecifierSet


def check_extension(stack, environment, row, requirement):
    """Judge Python, wheels, glibc and PyTorch; requirement: what installs the release."""
    wrong, torch = [], environment["frameworks"].get("pytorch")
    if requirement not in environment["requirements"]:
        wrong.append(f"nothing installs {requirement}")
    if environment["python"] not in row["python"]:
        wrong.append(f"{requirement}: not for this Python")
    if stack["os"]["arch"] not in row["arch"]:
        wrong.append(f"{requirement}: no wheels for this architecture")
    glibc = checker.DISTROS[stack["os"]["id"], stack["os"]["version"]]["glibc"]
    if glibc and row.get("glibc") and checker.n(glibc) < checker.n(row["glibc"]):
        wrong.append(f"{requirement}: glibc too old")
    if torch is None or not SpecifierSet(row["torch"]).contains(torch):
        wrong.append(f"{requirement}: not for this PyTorch")
    return wrong


def is_default_build(environment):
    """Whether PyTorch is the build that the general package index has."""
    builds = checker.TORCH[environment["frameworks"]["pytorch"]]["builds"]
    tag = checker.tag_of(environment)
    return any(one["tag"] == tag and one.get("default") for one in builds)
