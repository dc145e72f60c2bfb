# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated machine's host is given."""

import re
import subprocess

import pytest
from ansible_collections.allreduce.gpu.tests.lab import hardware, paths
from ansible_collections.allreduce.gpu.tests.lab.progress import LabError

LIBRARY = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{}"


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """The directory of a host that is to be a machine."""
    monkeypatch.setattr(paths, "LAB", tmp_path)
    options = hardware.options("lab", "lab-1", "a100-nvlink")
    place = paths.lab("lab") / "lab-1"
    assert f"{place}:{hardware.MOUNT}" in options
    return place


def test_a_host_without_a_machine_is_given_nothing():
    assert hardware.options("lab", "lab-1", None) == []


def test_an_unknown_machine_is_refused_with_the_known_ones():
    with pytest.raises(LabError, match=r"machine 'cray' is unknown: use one of .*a100-nvlink.*"):
        hardware.options("lab", "lab-1", "cray")


def test_a_running_host_gets_the_files_of_this_checkout(recorded, monkeypatch):
    said = []
    monkeypatch.setattr(hardware, "podman", lambda *words, input_text: said.append((words[2], input_text)))
    (recorded / "files/allreduce-health.conf").unlink()
    hardware.install("lab", "lab-1")
    assert (recorded / "files/allreduce-health.conf").exists()
    assert said == [("lab-1", hardware.INSTALL)]


def test_at_first_there_are_devices_and_no_driver(recorded):
    assert len(list((recorded / "sys/bus/pci/devices").iterdir())) >= 6
    assert not (recorded / "proc/driver/nvidia").exists()


@pytest.mark.parametrize(
    ("installed", "loaded", "answer", "cuda"),
    [
        ("460.106.00", "460.106.00", None, "11020"),
        ("535.309.01", "535.309.01", None, "12020"),
        ("595.91.07", "595.91.07", None, "13020"),
        ("999.1", "999.1", None, "12020"),  # of a branch that the tables do not have: as the machine was recorded
        ("535.309.01", None, "!9", "12020"),  # no module
        ("580.95.05", "535.309.01", "!18", "13000"),  # driver/library version mismatch
    ],
)
def test_nvml_answers_where_library_and_module_are_of_one_version(recorded, tmp_path, installed, loaded, answer, cuda):
    """The host's own script, with its paths moved below tmp_path."""
    root = tmp_path / "root"
    (root / LIBRARY.format(installed)).parent.mkdir(parents=True)
    (root / LIBRARY.format(installed)).touch()
    (root / "usr/local/lib").mkdir(parents=True)
    script = (recorded / "files/lab-machine").read_text().replace("/srv/machine", str(recorded))
    script = re.sub(r"(?<![\w/.$}])/usr/", f"{root}/usr/", script)
    script = script.replace("/etc/ld.so.cache", f"{root}/ld.so.cache").replace("ldconfig -C", "touch")
    if loaded:
        kernel = recorded / "proc/driver/nvidia"
        kernel.mkdir(parents=True)
        template = (recorded / "loaded/proc/driver/nvidia/version").read_text()
        (kernel / "version").write_text(template.replace("@VERSION@", loaded))
    subprocess.run(["sh", "-c", script, "lab-machine", "library"], check=True)
    profile = (recorded / "profile").read_text()
    assert f"system nvml_version 12.{installed}" in profile
    assert re.findall(r"^system init (.*)$", profile, re.M) == ([answer] if answer else [])
    assert re.findall(r"^system cuda_version (.*)$", profile, re.M) == [cuda]
    assert (root / "usr/local/lib/libnvidia-ml.so.1").exists()
    assert (root / "usr/local/lib/libnvidia-ml.so").resolve().name == "libnvidia-ml.so.1"
    assert [path.name for path in root.glob("ld.so.cache*")] == ["ld.so.cache"]
