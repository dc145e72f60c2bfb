# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of recorded processes, and what nobody can raise them above."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import limits
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import (
    STATUS,
    WITHOUT_RESOURCE,
    server,
)
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import limits as text


def test_limits_are_numbers_or_unlimited():
    assert limits.parse(text()) == {
        "memlock": {"soft": 8388608, "hard": 8388608},
        "nofile": {"soft": 1024, "hard": 524288},
        "nproc": {"soft": "unlimited", "hard": "unlimited"},
    }
    assert limits.parse(None) == {}


@pytest.mark.parametrize(
    ("files", "memlock", "nofile"),
    [
        ({}, "unlimited", 1048576),
        ({"/proc/1/status": STATUS.format(caps=WITHOUT_RESOURCE)}, 8388608, 524288),
        # The capability counts in the first user namespace only.
        ({"/proc/1/uid_map": "         0     100000      65536\n"}, 8388608, 524288),
        ({"/proc/1/status": ""}, 8388608, 524288),
    ],
    ids=["root", "without_capability", "user_namespace", "unknown"],
)
def test_the_ceiling(tmp_path, files, memlock, nofile):
    ceiling = limits.read_ceiling(tree(tmp_path, {**server(), **files}))
    assert (ceiling["memlock"], ceiling["nofile"]) == (memlock, nofile)


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/slurmd.service\n", "slurmd"),
        ("0::/system.slice/slurmd.service/step_1\n", "slurmd"),
        ("12:pids:/system.slice/sshd.service\n1:name=systemd:/system.slice/sshd.service\n", "sshd"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service\n", "user@1000"),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", None),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
        ("0::/init.scope\n", None),
        ("0::/machine.slice/libpod-1.scope/system.slice/slurmd.service\n", None),
        (None, None),
    ],
)
def test_the_service_of_a_process(cgroup, unit):
    assert limits.unit_of(cgroup) == unit


def test_the_process_that_has_least_speaks_for_its_service(tmp_path):
    files = server()
    for pid, unit, memlock in (
        (900, "slurmd", "unlimited"), (1000, "slurmd", "65536"), (1001, "slurmd", "8388608"), (7, "cron", "1"),
    ):  # fmt: skip
        files[f"/proc/{pid}/cgroup"] = f"0::/system.slice/{unit}.service\n"
        files[f"/proc/{pid}/limits"] = text(memlock=memlock)
    files["/proc/2000/cgroup"] = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n"
    files["/proc/2000/limits"] = text(memlock="64")
    found = limits.read_services(tree(tmp_path, files), ["slurmd", "munge"])
    assert set(found) == {"slurmd", "user@1000"}
    assert found["slurmd"]["memlock"] == {"soft": 65536, "hard": 65536, "pid": 1000}
    assert found["user@1000"]["memlock"]["pid"] == 2000


def test_a_login_and_a_service_are_started_to_see_what_they_get():
    asked = []

    def run(arguments):
        asked.append(arguments)
        return text(memlock="unlimited") if arguments[0] == "runuser" else None

    found = limits.read_fresh(run, "trainer")
    assert found["login"]["memlock"]["soft"] == "unlimited" and found["unit"] == {}
    assert asked[0][:3] == ["runuser", "-l", "trainer"] and asked[1][0] == "systemd-run"
