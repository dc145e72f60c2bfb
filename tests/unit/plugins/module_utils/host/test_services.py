# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json
from types import SimpleNamespace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import services
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

SHOWN = """LoadState=loaded
ActiveState=active
UnitFileState=enabled
NeedDaemonReload=yes

LoadState=loaded
ActiveState=active
UnitFileState=static
NeedDaemonReload=no

LoadState=not-found
ActiveState=inactive
UnitFileState=
NeedDaemonReload=no
"""
STAT = "1 (systemd) S " + " ".join(["0"] * 18) + " 100 0\n"


def test_show_is_read_in_order():
    assert services.parse_show(SHOWN, ["chrony", "nvidia-persistenced", "chronyd"]) == {
        "chrony": {"enabled": True, "active": True, "outdated": True},
        "nvidia-persistenced": {"enabled": False, "active": True, "outdated": False},  # it cannot be enabled
        "chronyd": {"enabled": False, "active": False, "outdated": False},
    }


def test_an_answer_that_does_not_fit_is_unknown():
    assert services.parse_show("Failed to connect to bus", ["a", "b"]) == services.unknown_services(["a", "b"])


@pytest.mark.parametrize(
    ("files", "container"),
    [
        ({}, False),
        ({"/run/systemd/container": "podman"}, True),
        ({"/.dockerenv": ""}, True),
        ({"/proc/1/environ": "container=lxc\0TERM=linux"}, True),
        ({"/proc/1/environ": "TERM=linux\0container=podman\0"}, True),
        ({"/proc/1/environ": "mycontainer=x\0"}, False),
    ],
)
def test_containers(tmp_path, files, container):
    assert services.is_container(tree(tmp_path, files)) is container


@pytest.mark.parametrize(
    ("since", "pending"),
    [
        ("2026-11-21T15:00:00Z", True),
        ("2026-11-20T15:00:00Z", False),
        (1795273200, True),
        (5, False),
        (None, True),
        ("someday", True),
    ],
)
def test_a_reboot_is_pending_until_it_happened(tmp_path, since, pending):
    # Booted at 2026-11-21T00:00:00Z, the first process one second later.
    files = tree(tmp_path, {
        "/proc/stat": "cpu 1\nbtime 1795219200\n", "/proc/1/stat": STAT,
        "/var/lib/allreduce/reboot-pending": json.dumps({"code": "other", "reason": "new driver", "since": since}),
    })  # fmt: skip
    found = services.read_reboot_pending(files)
    expected = {"reason": "new driver", "since": since, "by_role": True, "code": "other"}
    assert found == (expected if pending else None)


def test_the_distributions_own_mark(tmp_path):
    files = tree(
        tmp_path,
        {"/run/reboot-required": "*** System restart required ***", "/run/reboot-required.pkgs": "libc6\nlibc6\n"},
    )
    assert services.read_reboot_pending(files)["reason"] == "libc6"


def test_no_mark_no_reboot(tmp_path):
    assert services.read_reboot_pending(tree(tmp_path, {})) is None


def test_free_space_of_a_directory_to_come(tmp_path):
    free = services.disk_free_mib(tree(tmp_path, {}), ["/", "/opt/allreduce/envs"])
    assert free["/"] == free["/opt/allreduce/envs"] > 0


def test_free_space_of_one_file_system_is_one_number_while_something_is_written(tmp_path, monkeypatch):
    left = iter(range(9, 0, -1))
    monkeypatch.setattr(services.os, "statvfs", lambda _path: SimpleNamespace(f_bavail=next(left) << 10, f_frsize=1024))
    assert services.disk_free_mib(tree(tmp_path, {}), ["/", "/opt", "/var"]) == {"/": 9, "/opt": 9, "/var": 9}


@pytest.mark.parametrize(
    ("files", "fips"),
    [
        ({}, False),
        ({"/proc/sys/crypto/fips_enabled": "0\n"}, False),
        ({"/proc/sys/crypto/fips_enabled": "1\n"}, True),
        ({"/etc/crypto-policies/state/current": "FIPS\n"}, True),
        ({"/etc/crypto-policies/state/current": "FIPS:OSPP\n"}, True),
        ({"/etc/crypto-policies/state/current": "DEFAULT\n"}, False),
    ],
)
def test_fips(files, fips, tmp_path):
    assert services.is_fips(tree(tmp_path, files)) is fips
