# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module gpu_health, run as a program on simulated machines: it changes nothing, so check mode gives the same answer."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import CODES_AT_ONCE, OPTIONS
from ansible_collections.allreduce.gpu.plugins.modules import gpu_health
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.drive_faults import drives, smart_log
from ansible_collections.allreduce.gpu.tests.lab.nvml.host_faults import EDAC

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"
PERSISTENT = (("persistence_mode", "1"),)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    return recording.build_library(tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


@pytest.fixture
def judge(library, tmp_path):
    """A function that records a machine and runs the module on it."""

    def run(machine, check=False, **options):
        for number, gpu in enumerate(machine.gpus):
            machine = machine.change(number, settings=gpu.settings + PERSISTENT)
        recording.record(machine, tmp_path)
        (tmp_path / "kmsg").touch()
        return again(check, library=str(library) if machine.library else "libnone.so.1", **options)

    def again(check=False, library=str(library), first=None, fails=False, **options):
        arguments = {
            "kernel_log": str(tmp_path / "kmsg"),
            "sysfs_root": str(tmp_path / "sys"),
            "procfs_root": str(tmp_path / "proc"),
            "root": str(tmp_path / "root"),
            "nvml_library": library,
            "_ansible_check_mode": check,
            **options,
        }
        (tmp_path / "arguments.json").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        environment = {
            **os.environ,
            "SIMULATED_NVML": str(tmp_path / "profile"),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(first or ""), str(COLLECTIONS), *sys.path])),
        }
        name = "ansible_collections.allreduce.gpu.plugins.modules.gpu_health"
        command = [sys.executable, "-m", name, str(tmp_path / "arguments.json")]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert process.returncode == int(fails), process.stdout + process.stderr
        return json.loads(process.stdout)

    run.again = again
    return run


def told(answer):
    return [(found["check"], found["gpu"], found["severity"]) for found in answer["findings"]]


# What a recorded root cannot tell: no kernel module lies in it, and systemd is not asked.
def test_the_same_in_check_mode_and_again(judge):
    first = judge(machines.a40_pcie(), gpu_count=4)
    assert first["changed"] is False
    assert (first["verdict"], told(first)) == ("ok", [])
    for check in (True, False, True):
        again = judge.again(check, gpu_count=4)
        assert {key: again[key] for key in first if key != "invocation"} == {
            key: first[key] for key in first if key != "invocation"
        }


@pytest.mark.parametrize(
    ("machine", "options", "verdict", "findings"),
    [
        (machines.a40_pcie(), {"gpu_count": 5}, "failed", [("gpu_count", None, "failed")]),
        (machines.a40_pcie().change(2, lost=True), {}, "failed", [("gpu_answers", "0000:98:00.0", "failed")]),
        (machines.a40_pcie().change(3, width=8), {}, "degraded", [("pcie_width", "GPU3", "degraded")]),
        (
            machines.a40_pcie().change(0, settings=(("p2p.1.0", "4"),)),
            {},
            "degraded",
            [("p2p_access", "GPU0", "degraded")],
        ),
        (
            machines.a40_pcie().change(0, settings=(("ecc_errors.1.0", "2"),)),
            {"max_uncorrected_errors": 1},
            "failed",
            [("ecc_errors", "GPU0", "failed")],
        ),
        (machines.a40_pcie().change(0, settings=(("ecc_errors.1.0", "2"),)), {"max_uncorrected_errors": 2}, "ok", []),
    ],
    ids=["count", "lost", "narrow", "no peer access", "errors", "tolerated"],
)
def test_verdicts(judge, machine, options, verdict, findings):
    answer = judge(machine, **options)
    assert (answer["verdict"], told(answer)) == (verdict, findings)


def test_xids_in_the_kernel_log(judge):
    answer = judge(machines.a40_pcie())
    assert answer["verdict"] == "ok"
    log = "3,0,2,-;NVRM: Xid (PCI:0000:31:00): 79, GPU has fallen off the bus.\n"
    Path(answer["invocation"]["module_args"]["kernel_log"]).write_text(log)
    assert told(judge.again()) == [("xid", "GPU1", "failed")]
    assert judge.again(ignored_xids=[79])["verdict"] == "ok"


@pytest.mark.parametrize(
    ("machine", "verdict", "check"),
    [
        (machines.a40_pcie().without_driver(), "failed", "module_loaded"),
        (machines.a40_pcie().with_library(None), "failed", "driver_library"),
        (machines.a40_pcie().with_library("550.54.14"), "reboot_required", "driver_library"),
        (machines.no_gpu(), "ok", None),
    ],
    ids=["no driver", "no library", "other library", "no gpu"],
)
def test_drivers_that_are_not_whole(judge, machine, verdict, check):
    answer = judge(machine)
    assert answer["verdict"] == verdict
    assert [name for name, _gpu, severity in told(answer) if severity != "unknown"] == ([check] if check else [])
    if check is None:
        assert answer["judged"] == []


def test_a_check_is_skipped_by_its_code(judge):
    answer = judge(machines.a40_pcie().change(3, width=8), skip_checks=["pcie_width"])
    assert (answer["verdict"], answer["skipped_checks"]) == ("ok", ["pcie_width"])


def test_a_code_that_no_check_has_is_refused_with_those_that_there_are(judge):
    judge(machines.no_gpu())
    message = judge.again(skip_checks=["pcie"], fails=True)["msg"]
    assert message.startswith("value of skip_checks must be one or more of: module_loaded, ")
    assert message.endswith("Got no match for: pcie")


def test_codes_and_thresholds_are_documented_as_in_the_table():
    options = yaml.safe_load(gpu_health.DOCUMENTATION)["options"]
    assert options["skip_checks"]["choices"] == list(CODES_AT_ONCE)
    for name, option in OPTIONS.items():
        assert {key: options[name][key] for key in ("type", "elements", "default") if key in options[name]} == option


def test_a_node_whose_binding_is_missing_is_unknown(judge, tmp_path):
    """Driver and library are there, and nothing can ask them."""
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "pynvml.py").write_text("raise ImportError\n")
    answer = judge(machines.a40_pcie(), first=tmp_path / "none")
    assert (answer["verdict"], told(answer)) == ("unknown", [("nvml", None, "unknown")])


def test_a_kernel_log_that_cannot_be_read_is_unknown(judge, tmp_path):
    judge(machines.a40_pcie())
    answer = judge.again(kernel_log=str(tmp_path))
    assert (answer["verdict"], told(answer)) == ("unknown", [("xid", None, "unknown")])


def test_what_is_around_the_gpus_is_read_below_the_roots(judge):
    busy = machines.a40_pcie().change(1, settings=(("processes", "4711:512"),))
    conf = {"root/etc/nccl.conf": "NCCL_IB_HCA==mlx5_0\n", "root/etc/environment": "NCCL_IB_HCA=mlx5_1\n"}
    answer = judge(busy.with_files({**conf, EDAC + "mc0/ue_count": "1\n"}), cpu_count=999)
    assert set(told(answer)) == {
        ("stale_processes", "GPU1", "degraded"),
        ("memory_errors", None, "failed"),
        ("cpu_count", None, "degraded"),
        ("nccl_settings", None, "degraded"),
    }


def test_what_was_read_is_recorded(judge, tmp_path):
    place = tmp_path / "recorded"
    assert judge(machines.a40_pcie(), True, record=str(place))["changed"] is False
    assert not place.exists()
    answer = judge.again(record=str(place))
    assert (answer["changed"], answer["verdict"]) == (True, "ok")
    assert {"sys", "proc", "root", "profile", "kmsg"} == set(os.listdir(place))
    assert "not an empty directory" in judge.again(fails=True, record=str(place))["msg"]


# Python imports it at each start. What processes fork writes into the same file.
HOOK = """
import os, sys
seen = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork")
sys.addaudithook(lambda event, arguments: event in STARTS and os.write(seen, (event + "\\n").encode()))
"""


def test_a_healthy_node_is_judged_without_another_program(judge, tmp_path):
    place = tmp_path / "first"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HOOK.format(path=str(tmp_path / "seen")))
    machine = machines.hgx_h100().with_files(drives(nvme0=smart_log(), nvme1=smart_log()))
    assert judge(machine, first=place)["verdict"] == "ok"
    assert (tmp_path / "seen").read_text().splitlines() == ["os.fork"], "one child, and no program"


def test_a_driver_that_hangs_is_unknown_and_bounded(judge):
    """A process in the kernel cannot be ended: the module goes without it, and says so whatever is left out."""
    began = time.monotonic()
    hanging = machines.a40_pcie().change(1, settings=(("hanging", "30"),))
    answer = judge(hanging, seconds=1, skip_checks=["nvml"])
    assert time.monotonic() - began < 20
    assert (answer["verdict"], told(answer), answer["counters"]) == ("unknown", [("nvml", None, "unknown")], {})
    assert answer["findings"][0]["measured"] == "no answer in 1 seconds"
