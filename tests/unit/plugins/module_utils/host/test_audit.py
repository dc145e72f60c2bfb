# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux denied, from the end of an audit log."""

import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import audit
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import rocky9_selinux as rocky
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

DENIED = {
    "command": "python", "operations": "execmem", "target": "unconfined_service_t", "kind": "process", "permissive": False,
    "count": 1,
}  # fmt: skip
EARLIER = rocky.event(1, rocky.HTTPD, rocky.BOOT - 9, uid=48, comm="httpd", exe="/usr/sbin/httpd")


def read(root, log, uid=rocky.TRAINER, **more):
    return audit.read_denials(tree(root, rocky.machine(log=log)), uid, **more)


def test_a_denial_of_training_has_command_target_and_class(tmp_path):
    log = EARLIER + rocky.event(2, rocky.EXECMEM)
    assert read(tmp_path, log) == {"problem": None, "complete": True, "denials": [DENIED]}


def test_what_is_denied_again_is_counted(tmp_path):
    log = "".join(rocky.event(number, rocky.EXECMEM) for number in range(5))
    assert read(tmp_path, log)["denials"] == [dict(DENIED, count=5)]


def test_what_stops_nothing_is_left_out(tmp_path):
    """nft, started by a unit with NoNewPrivileges=, goes on in the domain of its caller."""
    denial = (
        '{ nnp_transition nosuid_transition } for pid=7 comm="python3.11" scontext=system_u:system_r:initrc_t:s0 '
        "tcontext=system_u:system_r:iptables_t:s0 tclass=process2 permissive=0"
    )
    event = {"uid": 0, "command": ["nft", "-f", "/etc/allreduce/firewall.nft"]}
    assert read(tmp_path, rocky.event(1, denial, **event))["denials"] == []
    assert read(tmp_path, rocky.event(1, denial.replace(" nosuid", " transition"), **event))["denials"] != []


@pytest.mark.parametrize(
    "change",
    [
        {"exe": "/opt/allreduce/python/cpython-3.12/bin/python3.12"},
        {"command": ["/opt/allreduce/envs/main/bin/python", "-m", "torch.distributed.run"]},
        {"paths": ["/etc/modprobe.d/allreduce-nvidia.conf"]},
        {"paths": ["/etc/nccl.conf"]},
    ],
)
def test_programs_and_files_of_ours_are_found_whoever_runs_them(tmp_path, change):
    assert len(read(tmp_path, rocky.event(1, rocky.EXECMEM, uid=0, **change))["denials"]) == 1


@pytest.mark.parametrize(
    ("log", "uid"),
    [
        (rocky.event(1, rocky.HTTPD, uid=48, comm="httpd", exe="/usr/sbin/httpd"), rocky.TRAINER),
        (rocky.event(1, rocky.EXECMEM, uid=0), None),
        (rocky.event(1, rocky.EXECMEM, uid=10010), rocky.TRAINER),
        (rocky.event(1, rocky.EXECMEM, rocky.BOOT - 1), rocky.TRAINER),
        (rocky.event(1, rocky.EXECMEM).replace("denied ", "granted "), rocky.TRAINER),
        (rocky.event(1, rocky.EXECMEM, uid=0, paths=["/dev/null", "/etc/nccl.conf.rpmsave"]), rocky.TRAINER),
        (rocky.event(1, rocky.EXECMEM, uid=0, comm="pmdanvidia", paths=["/dev/nvidia0"]), rocky.TRAINER),
    ],
    ids=["another service", "root", "another user", "before the boot", "granted", "other files", "a monitor"],
)
def test_what_is_not_ours_is_left_out(tmp_path, log, uid):
    assert read(tmp_path, log, uid)["denials"] == []


def test_a_daemon_that_acts_for_the_training_user_counts(tmp_path):
    """sshd reads the keys of a user whose rights it took; their labels are wrong where they came from elsewhere with mv."""
    denial = (
        '{ read } for  pid=9 comm="sshd" name="authorized_keys" dev="dm-0" ino=45 scontext=system_u:system_r:sshd_t:s0 '
        "tcontext=unconfined_u:object_r:user_tmp_t:s0 tclass=file permissive=0"
    )
    log = rocky.event(1, denial, uid=0, comm="sshd", exe="/usr/sbin/sshd").replace(
        " euid=0 ", f" euid={rocky.TRAINER} "
    )
    assert [one["target"] for one in read(tmp_path, log)["denials"]] == ["authorized_keys"]


def test_a_denied_file_has_its_path_where_the_event_tells(tmp_path):
    denial = (
        '{ open } for  pid=9 comm="python" name="tuning.json" dev="dm-0" ino=45 scontext=system_u:system_r:init_t:s0 '
        "tcontext=system_u:object_r:user_home_t:s0 tclass=file permissive=1"
    )
    found = read(tmp_path, rocky.event(1, denial, uid=0, paths=["/", "/etc/allreduce/tuning.json"]))["denials"]
    assert [(one["target"], one["kind"], one["permissive"]) for one in found] == [
        ("/etc/allreduce/tuning.json", "file", True)
    ]


def test_a_record_alone_and_that_of_a_daemon(tmp_path):
    """Without audit rules there is no SYSCALL; systemd and D-Bus ask SELinux themselves."""
    lines = [
        f'node=gpu-1 type=AVC msg=audit({rocky.BOOT + 1}.0:7): avc:  denied  {{ read open }} for  pid=9 comm="python" '
        "path=2F6F70742F616C6C72656475636520 scontext=a:b:c_t:s0 tcontext=d:e:device_t:s0 tclass=chr_file permissive=0",
        f"type=USER_AVC msg=audit({rocky.BOOT + 1}.0:8): pid=1 uid=0 auid=4294967295 ses=4294967295 subj=system_u:system_r:init_t:s0 "
        'msg=\'avc:  denied  { start } for auid=n/a uid=0 gid=0 path="/etc/systemd/system/allreduce-qos.service" cmdline="" '
        'scontext=a:b:c_t:s0 tcontext=d:e:systemd_unit_file_t:s0 tclass=service permissive=0 exe="/usr/lib/systemd/systemd"\'',
    ]
    found = read(tmp_path, "\n".join(lines))["denials"]
    assert [(one["operations"], one["target"], one["kind"]) for one in found] == [
        ("read open", "/opt/allreduce ", "chr_file"),
        ("start", "/etc/systemd/system/allreduce-qos.service", "service"),
    ]


def test_only_the_end_of_a_long_log_is_read(tmp_path):
    old = rocky.event(1, rocky.EXECMEM.replace("execmem", "ptrace"))
    log = old + rocky.event(2, rocky.EXECMEM)
    found = read(tmp_path, log, limit=len(log) - len(old) + 20)
    assert [one["operations"] for one in found["denials"]] == ["execmem"]
    assert found["complete"] is False
    assert read(tmp_path, EARLIER + log, limit=len(log) + 200)["complete"] is True


@pytest.mark.parametrize(("written", "complete"), [(rocky.BOOT - 60, True), (rocky.BOOT + 60, False)])
def test_a_log_that_was_rotated_since_the_boot_does_not_reach_back(tmp_path, written, complete):
    files = tree(tmp_path, {**rocky.machine(log=rocky.event(2, rocky.EXECMEM)), "/var/log/audit/audit.log.1": ""})
    os.utime(files.path("/var/log/audit/audit.log.1"), (written, written))
    assert audit.read_denials(files, rocky.TRAINER)["complete"] is complete


def test_what_could_not_be_read_is_said(tmp_path):
    assert audit.read_denials(tree(tmp_path / "debian", {"/var/log/audit/audit.log": ""}), 1) is None
    assert read(tmp_path / "absent", None)["problem"] == "absent"
    files = tree(
        tmp_path / "unreadable", {**rocky.machine(), "/var/log/audit/audit.log/a": ""}
    )  # nobody reads a directory
    assert audit.read_denials(files, 1)["problem"] == "unreadable"
    files = tree(tmp_path / "no boot", {**rocky.machine(log=""), "/proc/stat": "cpu 1\n"})
    assert audit.read_denials(files, 1)["problem"] == "boot_unknown"


def test_a_flood_of_denials_is_cut(tmp_path):
    log = "".join(rocky.event(number, rocky.EXECMEM.replace("execmem", f"op{number}")) for number in range(50))
    assert len(read(tmp_path, log)["denials"]) == audit.MOST
