# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a bill of materials lists, planned and as they were found."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import observed as found
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import (
    Build,
    Component,
    Driver,
    Environment,
    Package,
    Stack,
    System,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.sbom.parts import Part, parts

DEBIAN = System("debian", "12", "x86_64", "debian")
ROCKY = System("rocky", "9", "aarch64", "el")
ON_DEBIAN = (("arch", "amd64"), ("distro", "debian-12"))
ON_ROCKY = (("arch", "aarch64"), ("distro", "rocky-9"))
NCCL = Component("2.21.5", (Package("libnccl2", "2.21.5-1+cuda12.4"),))
MAIN = Environment(
    "main", "3.11", requirements=("torch==2.5.1", "numpy<2", "cuda-python[all]==12.4.0 ; sys_platform == 'linux'")
)


def names(rows):
    return [(one.kind, one.name, one.version) for one in rows]


@pytest.mark.parametrize(
    "stack, expected",
    [
        (Stack(DEBIAN), []),
        (Stack(DEBIAN, nccl=NCCL), [Part("deb", "libnccl2", "2.21.5-1+cuda12.4", "nccl", ON_DEBIAN)]),
        (Stack(ROCKY, nccl=NCCL), [Part("rpm", "libnccl2", "2.21.5-1+cuda12.4", "nccl", ON_ROCKY)]),
        # The distribution chooses the version.
        (
            Stack(DEBIAN, driver=Driver("535.1", (Package("nvidia-driver", "535.*"), Package("firmware")))),
            [
                Part("generic", "nvidia-driver", "535.1", "driver"),
                Part("deb", "nvidia-driver", None, "driver", ON_DEBIAN),
                Part("deb", "firmware", None, "driver", ON_DEBIAN),
            ],
        ),
        # A runfile has no package.
        (Stack(DEBIAN, driver=Driver("550.54.15", source="runfile")), [Part("generic", "nvidia-driver", "550.54.15", "driver")]),
        # A package that is named twice is listed once.
        (
            Stack(DEBIAN, nccl=Component("1", (Package("a", "1"), Package("a", "1")))),
            [Part("deb", "a", "1", "nccl", ON_DEBIAN)],
        ),
    ],
)  # fmt: skip
def test_packages_of_the_system(stack, expected):
    assert parts(stack) == expected


def test_a_planned_environment():
    stack = Stack(DEBIAN, environments=(MAIN, Environment("horovod", "3.9", build=Build("0.28.1"))))

    assert [(*one, part.group) for one, part in zip(names(parts(stack)), parts(stack), strict=True)] == [
        ("generic", "python", "3.11", "main"),
        ("pypi", "torch", "2.5.1", "main"),
        ("pypi", "numpy", None, "main"),
        ("pypi", "cuda-python", "12.4.0", "main"),
        ("generic", "python", "3.9", "horovod"),
        ("pypi", "horovod", "0.28.1", "horovod"),
    ]


OBSERVED = found.Observed(
    packages={"libnccl2": "2.20.5-1+cuda12.4", "nvidia-driver": None},
    environments={
        "main": found.Environment(
            "3.11.2", {"torch": "2.5.1", "numpy": "1.26.4"}, conda=found.Conda(packages={"openssl": "3.3.0 h1_0"})
        ),
        "of somebody else": found.Environment("3.8", {"x": "1"}),
    },
)


def test_what_is_installed():
    planned = Stack(DEBIAN, driver=Driver("535", (Package("nvidia-driver"),)), nccl=NCCL, environments=(MAIN,))

    assert parts(planned, OBSERVED) == [
        Part("deb", "libnccl2", "2.20.5-1+cuda12.4", "nccl", ON_DEBIAN),
        Part("generic", "python", "3.11.2", "main"),
        Part("conda", "openssl", "3.3.0", "main", (("build", "h1_0"),)),
        Part("pypi", "numpy", "1.26.4", "main"),
        Part("pypi", "torch", "2.5.1", "main"),
    ]


def test_a_runfile_that_is_installed():
    planned = Stack(DEBIAN, driver=Driver("550.54.15", source="runfile"))
    node = found.Observed(driver=found.InstalledDriver("550.54.15", "550.54.14"))

    assert names(parts(planned, node)) == [("generic", "nvidia-driver", "550.54.14")]


def test_an_environment_that_is_not_there():
    assert parts(Stack(DEBIAN, environments=(MAIN,)), found.Observed()) == []
