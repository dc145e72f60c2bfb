# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL is told on a recorded node: by its own file, and by everybody else."""

import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import nccl
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ROUTES = """\
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
cni0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth9\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
STATES = {
    f"/sys/class/net/{name}/operstate": text
    for name, text in (("eth0", "up\n"), ("cni0", "unknown\n"), ("eth9", "down\n"))
}
FILES = {
    "/etc/environment": 'PATH="/usr/bin"\nNCCL_DEBUG=INFO\n',
    "/etc/environment.d/50-x.conf": "A=1\nNCCL_ALGO=Ring\n",
    "/etc/profile": "#export NCCL_DEBUG=INFO\n",
    "/etc/profile.d/nccl.sh": '# NCCL_X=1\nexport A=1 NCCL_P2P_DISABLE=1\n[ "$NCCL_PROTO" = LL ] || unset NCCL_PROTO\n: "${NCCL_SHM:=1}"\n',
    "/etc/profile.d/nccl.csh": "setenv NCCL_IB_DISABLE 1\n",
    "/etc/security/pam_env.conf": "NCCL_NET DEFAULT=Socket\nNCCL_OTHER OVERRIDE=1\n",
    "/etc/default/slurmd": "SLURMD_OPTIONS=\n  NCCL_BUFFSIZE=1\n",
    "/etc/sysconfig/slurmd": "NCCL_NTHREADS=1\n",
    "/etc/systemd/system.conf.d/x.conf": '[Manager]\nDefaultEnvironment="A=1" "NCCL_IB_HCA=mlx5_0"\n',
    "/etc/systemd/system/slurmd.service": "[Service]\nEnvironment=NCCL_IB_TC=106\n",
    "/etc/systemd/system/slurmd.service.d/x.conf": "[Service]\nEnvironment=NCCL_IB_SL=1 TORCH_NCCL_BLOCKING_WAIT=1\n",
    "/etc/systemd/system/slurmd.service.d/x.bak": "NCCL_IB_SL=1\n",
    "/home/trainer/.nccl.conf": "NCCL_DEBUG=WARN\n",
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\ntrainer:x:1000:1000::/home/trainer:/bin/sh\n",
}
FOUND = [
    ("/home/trainer/.nccl.conf", 1, "NCCL_DEBUG"),
    ("/etc/environment", 2, "NCCL_DEBUG"),
    ("/etc/environment.d/50-x.conf", 2, "NCCL_ALGO"),
    ("/etc/profile.d/nccl.csh", 1, "NCCL_IB_DISABLE"),
    ("/etc/profile.d/nccl.sh", 2, "NCCL_P2P_DISABLE"),
    ("/etc/security/pam_env.conf", 1, "NCCL_NET"),
    ("/etc/security/pam_env.conf", 2, "NCCL_OTHER"),
    ("/etc/default/slurmd", 2, "NCCL_BUFFSIZE"),
    ("/etc/sysconfig/slurmd", 1, "NCCL_NTHREADS"),
    ("/etc/systemd/system.conf.d/x.conf", 2, "NCCL_IB_HCA"),
    ("/etc/systemd/system/slurmd.service", 2, "NCCL_IB_TC"),
    ("/etc/systemd/system/slurmd.service.d/x.conf", 2, "NCCL_IB_SL"),
]


def test_every_place_is_read_and_nothing_but_names_is_told(tmp_path):
    found = nccl.read_nccl(tree(tmp_path, FILES), "trainer")["foreign"]
    assert [(one["file"], one["line"], one["name"]) for one in found] == FOUND
    assert {tuple(sorted(one)) for one in found} == {("file", "line", "name", "zero")}


@pytest.mark.parametrize(
    ("line", "zero"),
    [
        ("NCCL_P2P_DISABLE=0", True), ("export NCCL_P2P_DISABLE='0' # on", True), ('Environment="NCCL_P2P_DISABLE=0"', True),
        ("setenv NCCL_P2P_DISABLE 0", True), ("NCCL_P2P_DISABLE DEFAULT=0", True), ("NCCL_P2P_DISABLE=1", False),
        ("NCCL_P2P_DISABLE=", False), ("NCCL_P2P_DISABLE=0x1", False), ("NCCL_P2P_DISABLE=$OFF", False), ("NCCL_P2P_DISABLE=10", False),
    ],
)  # fmt: skip
def test_a_switch_that_is_off_is_told_apart(tmp_path, line, zero):
    assert [one["zero"] for one in nccl.read_foreign(tree(tmp_path, {"/etc/profile.d/x.sh": line}))] == [zero]


def test_without_the_user_their_file_does_not_count(tmp_path):
    made = tree(tmp_path, FILES)
    for user in (None, "nobody-here"):
        assert FOUND[0] not in [tuple(one.values())[:3] for one in nccl.read_nccl(made, user)["foreign"]]


def test_what_is_no_short_file_is_left(tmp_path):
    made = tree(tmp_path, {"/etc/default/long": "NCCL_X=1\n" * 9000, "/etc/profile.d/directory/x": "NCCL_X=1\n"})
    os.mkfifo(tmp_path / "etc/profile.d/pipe")
    assert nccl.read_foreign(made) == []


def test_links_stay_below_the_root(tmp_path):
    made = tree(tmp_path, {"/usr/share/x.sh": "NCCL_X=1\n", "/etc/profile.d/x.sh": ("link", "/usr/share/x.sh")})
    assert [one["file"] for one in nccl.read_foreign(made)] == ["/etc/profile.d/x.sh"]


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("NCCL_IB_HCA==mlx5_0\nNCCL_IB_HCA=second\n", {"NCCL_IB_HCA": "=mlx5_0"}),
        ("# NCCL_A=1\nNCCL_B = 2 # two\nOTHER=1\nNCCL_C\n", {"NCCL_B ": " 2 # two"}),
        (" # NCCL_A=1\n", {}),
    ],
)
def test_the_file_is_read_as_nccl_reads_it(tmp_path, text, variables):
    fact = nccl.read_nccl(tree(tmp_path, {"/etc/nccl.conf": text}))
    assert fact["variables"] == variables
    assert (fact["exists"], fact["original"], fact["recorded"]) == (True, True, False)


@pytest.mark.parametrize(("before", "original"), [("null", False), ('{"content": ""}', True)])
def test_the_record_says_whether_there_was_a_file(tmp_path, before, original):
    record = f'{{"format": 1, "boot": null, "values": {{}}, "files": {{"/etc/nccl.conf": {before}}}}}'
    fact = nccl.read_nccl(tree(tmp_path, {"/etc/nccl.conf": "", "/var/lib/allreduce/nccl_conf.json": record}))
    assert (fact["recorded"], fact["original"]) == (True, original)


def test_interfaces_that_are_up_and_their_subnets(tmp_path):
    made = tree(tmp_path, {"/proc/net/route": ROUTES, **STATES})
    assert nccl.read_interfaces(made) == [
        {"name": "cni0", "subnet": "10.244.0.0/16"},
        {"name": "eth0", "subnet": "10.0.0.0/24"},
    ]
    assert nccl.read_interfaces(tree(tmp_path / "empty", {})) == []
