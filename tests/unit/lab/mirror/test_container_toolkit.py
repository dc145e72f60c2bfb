# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for nvidia-ctk fails where NVIDIA's fails, and its packages have the relations of NVIDIA's."""

import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.tests.lab.mirror import catalogue
from ansible_collections.allreduce.gpu.tests.lab.mirror.payload import Builder

LIBRARIES = {"nvml": b"nvml", "empty": b"empty"}
TOOLKIT, BASE, TOOLS = "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools"


def stub(name, version, slug="debian12"):
    return next(one for one in catalogue.packages(slug) if (one.name, one.upstream) == (name, version))


@pytest.mark.parametrize(
    ("slug", "version", "relations"),
    [
        ("debian12", "1.17.3", [f"{BASE} (= 1.17.3-1)", f"{TOOLS} (>= 1.17.3-1)", f"{TOOLS} (<< 2.0.0)"]),
        ("debian12", "1.19.1", [f"{BASE} (= 1.19.1-1)", f"{TOOLS} (= 1.19.1-1)", f"{TOOLS} (<< 2.0.0)"]),
        ("rhel9", "1.17.8", [f"{BASE} = 1.17.8-1", f"{TOOLS} >= 1.17.8-1", f"{TOOLS} < 2.0.0"]),
    ],
)
def test_relations(slug, version, relations):
    assert list(stub(TOOLKIT, version, slug).depends) == relations


def test_the_repository_of_debian_13_does_not_have_it():
    assert not [one for one in catalogue.packages("debian13") if "container" in one.name]


@pytest.mark.parametrize(("version", "units"), [("1.17.8", 0), ("1.19.1", 2)])
def test_newer_releases_bring_the_service(version, units):
    payload = Builder("apt", LIBRARIES).build(stub(BASE, version))
    assert sum("/nvidia-cdi-refresh." in path for path in payload.files) == units
    assert bool(payload.scripts) == bool(units)


def test_without_a_driver_there_is_no_specification(tmp_path):
    payload = Builder("apt", LIBRARIES).build(stub(BASE, "1.17.3"))
    program, output = tmp_path / "nvidia-ctk", tmp_path / "cdi" / "nvidia.yaml"
    program.write_bytes(payload.files["/usr/bin/nvidia-ctk"])
    asked = [sys.executable, str(program), "cdi", "generate", f"--output={output}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 1 and "ERROR_LIBRARY_NOT_FOUND" in done.stderr
    assert not output.exists()
