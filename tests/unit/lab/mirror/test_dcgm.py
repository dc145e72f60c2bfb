# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for dcgm-exporter ends where NVIDIA's ends, and lies in the repositories that the role knows."""

import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.counters import counters
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.programs import has_dcgm_packages
from ansible_collections.allreduce.gpu.tests.lab.mirror import catalogue
from ansible_collections.allreduce.gpu.tests.lab.mirror.model import table
from ansible_collections.allreduce.gpu.tests.lab.mirror.payload import Builder

LIBRARIES = {"nvml": b"nvml", "empty": b"empty"}
EXPORTER = "datacenter-gpu-manager-exporter"
VERSIONS = table("dcgm")["exporter"]
SYSTEMS = {
    "ubuntu2004": ("debian", "ubuntu", "20.04"), "ubuntu2204": ("debian", "ubuntu", "22.04"), "ubuntu2404": ("debian", "ubuntu", "24.04"),
    "debian12": ("debian", "debian", "12"), "debian13": ("debian", "debian", "13"),
    "rhel8": ("el", "rocky", "8.10"), "rhel9": ("el", "rocky", "9.4"), "rhel10": ("el", "rocky", "10.0"),
}  # fmt: skip


def stub(version, slug="debian12"):
    return next(one for one in catalogue.packages(slug) if one.name == EXPORTER and one.upstream == version)


@pytest.fixture
def run(tmp_path):
    """A function that starts the exporter of a release; it finds no DCGM here."""

    def started(text, *options, version=VERSIONS[-1]):
        payload = Builder("apt", LIBRARIES).build(stub(version))
        assert "/usr/bin/dcgm-exporter" in payload.programs
        program, file = tmp_path / "dcgm-exporter", tmp_path / "counters.csv"
        program.write_bytes(payload.files["/usr/bin/dcgm-exporter"])
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program), f"--collectors={file}", *options],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    return started


@pytest.mark.parametrize("version", VERSIONS)
def test_it_reads_our_counters_file_to_the_end(run, version):
    code, words = run(counters(), version=version)
    assert code == 1 and "libdcgm.so not Found" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DCGM_FI_DEV_GPU_RECOVERY_ACTION, gauge, x\n", "could not find DCGM field"),
        ("# a comment\nDCGM_FI_DEV_GPU_TEMP, gauge\n", "malformed CSV record"),
        ("DCGM_FI_DEV_GPU_TEMP, number, x\n", "could not find Prometheus metric type"),
    ],
)
def test_what_ends_it(run, text, words):
    code, said = run(text)
    assert code == 1 and words in said


def test_an_option_that_it_does_not_know_ends_it(run):
    assert run(counters(), "--web.config.file=/x")[0] != 0


def test_a_field_came_with_a_release(run):
    text = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION, gauge, x\n"
    assert "could not find" in run(text, version="4.5.0")[1]
    assert "could not find" not in run(text, version="4.8.2")[1]


@pytest.mark.parametrize("slug", catalogue.repositories())
def test_it_is_where_the_role_says_that_it_is(slug):
    names = {one.name for one in catalogue.packages(slug)}
    family, name, version = SYSTEMS[slug]
    assert (EXPORTER in names) == has_dcgm_packages({"family": family, "id": name, "version": version})


# EL 10 begins with branch 580.
PLANS = [(slug, driver) for slug in table("dcgm")["repositories"] for driver in ("550", "580")]
PLANS.remove(("rhel10", "550"))


@pytest.mark.parametrize(("slug", "driver"), PLANS)
def test_every_package_of_a_planned_dcgm_is_there(slug, driver):
    family, name, version = SYSTEMS[slug]
    request = {"dcgm": "latest", "driver": driver, "pytorch": "none"}
    stack = resolve({"os": f"{name} {version}", "gpus": ["A40"], "request": request})["stack"]
    epoch = "1:" if family == "debian" else ""
    there = {(one.name, f"{epoch}{one.version}"): one for one in catalogue.packages(slug)}
    wanted = [there[one["name"], one["version"]] for one in stack["dcgm"]["packages"]]
    assert {one.epoch for one in wanted} == {1}
    core = next(one for one in wanted if one.name.endswith("-core"))
    (plugins,) = (one for one in wanted if "-4-cuda" in one.name)
    assert f"1:{core.version}" in plugins.depends[0]
