# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVMe drives are asked as the kernel wants it, and their log is read byte by byte. No test here asks a real drive."""

import errno
import json
import os
import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import nvme_log
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host_reading import read_nvme
from ansible_collections.allreduce.gpu.plugins.module_utils.health.nvme import decode, nvme_health
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.drive_faults import drives, smart_log

LIMITS = {"nvme_used_percent": 100, "max_nvme_media_errors": 0}
HEADER = "/usr/include/linux/nvme_ioctl.h"
PROGRAM = """
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <sys/ioctl.h>
int main(void) {
    struct nvme_admin_cmd c = {.opcode = 2, .nsid = 0xffffffff, .addr = 0x123456789abc, .data_len = 512, .cdw10 = 127 << 16 | 2};
    printf("%lx ", (unsigned long) NVME_IOCTL_ADMIN_CMD);
    for (unsigned i = 0; i < sizeof c; i++) printf("%02x", ((unsigned char *) &c)[i]);
}
"""


def measured(*drives, **limits):
    """What is found of drives: [(severity, action class, measured)]."""
    entries = nvme_health({"nvme": list(drives)}, {**LIMITS, **limits})
    return [(one["severity"], one["action_class"], one["measured"]) for entry in entries for one in entry["findings"]]


def drive(page=None, refused=None, name="nvme0"):
    return {"name": name, "page": page, "refused": refused}


@pytest.mark.skipif(not (shutil.which("gcc") and os.path.exists(HEADER)), reason="no gcc, or no header of the kernel")
def test_the_question_is_the_kernels(tmp_path):
    (tmp_path / "a.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-o", str(tmp_path / "a"), str(tmp_path / "a.c")], check=True)
    number, command = subprocess.check_output([str(tmp_path / "a")], universal_newlines=True).split()
    assert (nvme_log.ADMIN_CMD, nvme_log.command(0x123456789ABC).hex()) == (int(number, 16), command)


def test_the_kernels_own_time_is_left_alone():
    """A shorter one would make it reset the drive."""
    assert nvme_log.COMMAND.unpack(bytes(nvme_log.command(1)))[-2] == 0


def test_bytes_of_the_log():
    page = smart_log(0x15, spare=88, threshold=5, used=130, media_errors=(1 << 64) + 3)
    assert len(page) == 2 * 512
    assert decode(page) == {"warning": 0x15, "spare": 88, "threshold": 5, "used": 130, "media_errors": (1 << 64) + 3}


@pytest.mark.parametrize(("given", "limits", "expected"), [
    (drive(smart_log()), {}, []),
    (drive(smart_log(0x01, spare=4)), {}, [("degraded", "monitor", "nvme0: its spare is below its own threshold")]),
    (drive(smart_log(spare=4, threshold=5)), {}, [("degraded", "monitor", "nvme0: 4 % of its spare left, its threshold is 5 %")]),
    (drive(smart_log(spare=5, threshold=5)), {}, []),
    (drive(smart_log(0x0C)), {}, [
        ("degraded", "isolate", "nvme0: media or internal errors have made it unreliable"),
        ("degraded", "isolate", "nvme0: it no longer accepts writes")]),
    (drive(smart_log(0xC0)), {}, [("degraded", "monitor", "nvme0: a warning of a later specification (0xc0)")]),
    (drive(smart_log(used=99)), {}, []),
    (drive(smart_log(used=90)), {"nvme_used_percent": 90}, [("degraded", "monitor", "nvme0: 90 % of its rated writes")]),
    (drive(smart_log(media_errors=2)), {}, [("degraded", "monitor", "nvme0: 2 media errors")]),
    (drive(smart_log(media_errors=2)), {"max_nvme_media_errors": 2}, []),
    (drive(refused="permission"), {}, [("unknown", "configure", "nvme0: not known (permission)")]),
    (drive(refused="EIO"), {}, [("unknown", "monitor", "nvme0: not known (EIO)")]),
])  # fmt: skip
def test_a_drive(given, limits, expected):
    assert measured(given, **limits) == expected


def test_one_finding_for_one_heat(examine):
    """The kernel's alarm is the bit of the same log (drivers/nvme/host/hwmon.c)."""
    alarm = {"sys/class/nvme/nvme0/hwmon3/temp1_alarm": "1\n"}
    hot = examine(machines.a40_pcie().with_files({**drives(nvme0=smart_log(0x02)), **alarm}))
    assert [one["check"] for one in hot["findings"]] == ["nvme_health"]
    refused = examine(machines.a40_pcie().with_files({**drives(nvme0=("permission",)), **alarm}))
    assert {one["check"] for one in refused["findings"]} == {"disks", "nvme_health"}


def test_a_node_without_drives_is_not_judged(examine):
    assert "nvme_health" not in {entry["check"] for entry in examine(machines.a40_pcie())["judged"]}


def test_a_container_is_not_judged_by_the_drives_of_its_host(examine, tmp_path):
    files = drives(nvme0=("permission",))
    assert examine(machines.a40_pcie().with_files(files))["verdict"] == "unknown"
    trees = [FileTree(str(tmp_path / name)) for name in ("sys", "proc")]
    assert len(read_nvme(*trees)) == 1
    namespace = tmp_path / "proc" / "self" / "ns" / "pid"
    namespace.unlink()
    namespace.symlink_to("pid:[4026532999]")
    assert read_nvme(*trees) == []


@pytest.mark.parametrize(("files", "asked"), [
    ({"transport": "pcie\n", "state": "live\n"}, True),
    ({}, True),
    ({"transport": "tcp\n", "state": "live\n"}, False),
    ({"transport": "pcie\n", "state": "resetting\n"}, False),
    ({"transport": "pcie\n", "state": "dead\n"}, False),
])  # fmt: skip
def test_only_drives_of_the_node_that_work_are_asked(tmp_path, files, asked):
    place = tmp_path / "class" / "nvme" / "nvme0"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    assert nvme_log.is_asked(FileTree(str(tmp_path)), "nvme0") is asked


@pytest.mark.parametrize(("path", "refused"), [
    ("none", "absent"),
    ("null", "ENOTTY"),  # a device that is not a drive
])  # fmt: skip
def test_what_a_drive_does_not_answer(path, refused):
    assert nvme_log.ask(path) == [path, {"page": None, "refused": refused}]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_what_only_root_may(number):
    assert nvme_log.reason(OSError(number, "")) == "permission"


def test_a_recording_has_its_drives(tmp_path):
    answers = {"nvme1": {"page": None, "refused": "permission"}, "nvme0": {"page": smart_log(), "refused": None}}
    (tmp_path / "nvme_log.json").write_text(json.dumps(answers))
    found = nvme_log.read_nvme(FileTree(str(tmp_path)))
    assert [(one["name"], one["refused"]) for one in found] == [("nvme0", None), ("nvme1", "permission")]
