# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are replicas, and what makes them so."""

from __future__ import annotations

import pytest

from tests.lab import replicas
from tests.lab.mirror import apt, catalogue, dnf
from tests.lab.progress import LabError


@pytest.mark.parametrize("name", replicas.names())
def test_the_repositories_of_a_distribution_exist(name):
    distribution = replicas.get(name)
    assert distribution.nvidia in catalogue.repositories()
    assert distribution.archive in (None, *apt.UBUNTU, *dnf.EL)
    assert distribution.is_replica == (not name.startswith("debian"))
    assert bool(distribution.disguise()) == distribution.is_replica


@pytest.mark.parametrize("name", [name for name in replicas.names() if replicas.get(name).release])
def test_an_enterprise_linux_replica_has_the_repository_files_of_its_distribution(name):
    assert "/etc/yum.repos.d/" in replicas.sources(replicas.get(name), "http://mirror.lab", "key")


def test_an_enterprise_linux_replica_says_so_everywhere():
    shell = replicas.get("rocky8").disguise()
    assert 'PLATFORM_ID="platform:el8"' in shell  # dnf reads it with these quotes only
    assert "Rocky Linux release 8.10" in shell
    assert "platform-python" in shell
    assert "python36" not in replicas.get("rocky9").disguise()


@pytest.mark.parametrize(
    ("variable", "value", "image"),
    [
        ("LAB_REGISTRY", "registry.example.org", "registry.example.org/library/ubuntu:22.04"),
        ("LAB_IMAGE", "example.org/ubuntu:22.04", "example.org/ubuntu:22.04"),
    ],
)
def test_a_host_from_the_real_image_is_no_replica(monkeypatch, variable, value, image):
    monkeypatch.setenv(variable, value)
    distribution = replicas.get("ubuntu2204")
    assert (distribution.image, distribution.is_replica, distribution.disguise()) == (image, False, "")


def test_an_unknown_distribution_is_refused():
    with pytest.raises(LabError, match="no distribution 'beos'"):
        replicas.get("beos")
