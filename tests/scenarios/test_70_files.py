# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers and libraries that come as a file: NVIDIA's runfile, cuDNN's archive. On Debian 12, with the real compiler and DKMS."""

import base64
import hashlib
import json

import pytest
from cluster import KEEP
from fault_host import HERE, FaultHost, stopped

pytestmark = pytest.mark.lab

VERSION = "550.54.15"
RUNFILE = HERE.joinpath("installer.sh").read_text(encoding="utf-8").replace("@VERSION@", VERSION)
INSTALLER = {
    "nvidia_driver_runfile": "file:///root/NVIDIA-Linux.run",
    "nvidia_driver_runfile_checksum": f"sha256:{hashlib.sha256(RUNFILE.encode()).hexdigest()}",
}
# As NVIDIA's archives are laid out; owner and modes as whoever packed it had them.
PACK = """
set -eu
rm -rf /root/pack; mkdir -p /root/pack/cudnn-linux-x86_64-8.9.7.29_cuda12-archive
cd /root/pack/cudnn-linux-x86_64-8.9.7.29_cuda12-archive; mkdir include lib
printf '#define CUDNN_MAJOR 8\\n' > include/cudnn_version.h; cp include/cudnn_version.h include/cudnn.h; echo text > LICENSE
gcc -shared -nostdlib -Wl,-soname,libcudnn.so.8 -o lib/libcudnn.so.8.9.7 -x c /dev/null
ln -s libcudnn.so.8.9.7 lib/libcudnn.so.8; ln -s libcudnn.so.8 lib/libcudnn.so
chmod 600 include/cudnn.h; chmod 777 lib/libcudnn.so.8.9.7 lib; chown -R 4711:4711 .
cd ..; tar -cJf /root/cudnn.tar.xz *
sha256sum /root/cudnn.tar.xz | cut -d' ' -f1
"""


@pytest.fixture(scope="module")
def host():
    made = FaultHost(
        "files", "debian12", "a40-pcie", {"driver": VERSION, "driver_source": "runfile", "kernel_modules": "open"}
    )
    text = base64.b64encode(RUNFILE.encode()).decode()
    made.run(
        f"rm -rf /var/lib/allreduce/*.run /var/log/nvidia-installer.log; echo {text} | base64 -d > /root/NVIDIA-Linux.run"
    )
    yield made
    if not KEEP:
        made.down()


def test_runfile_without_a_checksum_is_refused(host):
    run = host.stack("base,driver", nvidia_driver_runfile=INSTALLER["nvidia_driver_runfile"])
    stopped(run, "set nvidia_driver_runfile", "nvidia_driver_runfile_checksum", "sha256:")
    assert host.driver() is None


def test_runfile_of_another_checksum_is_not_run(host):
    run = host.stack("driver", **{**INSTALLER, "nvidia_driver_runfile_checksum": f"sha256:{'0' * 64}"})
    stopped(run, "checksum", "did not match")
    assert host.run("ls /var/log/nvidia-installer.log /var/lib/allreduce/*.run 2>/dev/null", check=False) == ""


def test_installer_fails(host):
    host.run("mkdir -p /var/log/nvidia-installer.log")
    try:
        run = host.stack("driver", **INSTALLER)
    finally:
        host.run("rmdir /var/log/nvidia-installer.log")
    stopped(run, "NVIDIA's installer file:///root/NVIDIA-Linux.run ended with", "See /var/log/nvidia-installer.log")
    assert host.driver() is None


def test_runfile(host):
    host.converges(**INSTALLER)
    assert host.driver() == VERSION
    assert host.run("head -1 /var/log/nvidia-installer.log").split() == ["--silent", "--dkms", "-m=kernel-open"]
    assert host.run("systemctl is-enabled nvidia-persistenced; systemctl is-active nvidia-persistenced").split() == [
        "enabled",
        "active",
    ]
    # Within its sandbox.
    host.run("systemctl restart nvidia-persistenced")
    again = host.stack(**INSTALLER)
    assert again.recap[host.host]["changed"] == 0, again.output


def test_runfile_has_another_version_than_the_plan(host):
    run = host.stack("driver", **INSTALLER, gpu_stack_request={**host.request, "driver": "550.90.07"})
    stopped(run, f"left driver {VERSION}", "not 550.90.07", "gpu_stack_request")


def test_runfile_is_removed(host):
    run = host.stack("driver", **INSTALLER, nvidia_driver_state="absent")
    assert run.status == 0, run.output[-4000:]
    assert host.driver() is None
    assert host.built() == []
    assert (
        host.run(
            "ls /etc/systemd/system/nvidia-persistenced.service /etc/systemd/system/*.wants/nvidia-persistenced.service 2>/dev/null",
            check=False,
        )
        == ""
    )
    assert json.loads(host.run("cat /var/lib/allreduce/reboot-pending"))["reason"]
    again = host.stack("driver", **INSTALLER, nvidia_driver_state="absent")
    assert again.recap[host.host]["changed"] == 0, again.output


@pytest.fixture(scope="module")
def archive(host):
    return {"cudnn_archive": "file:///root/cudnn.tar.xz", "cudnn_archive_checksum": f"sha256:{host.run(PACK).strip()}"}


def test_archive_without_a_checksum_is_refused(host, archive):
    stopped(host.stack("cudnn", cudnn_archive=archive["cudnn_archive"]), "cudnn_archive_checksum is ''", "sha256:")


def test_archive(host, archive):
    run = host.stack("cudnn", **archive)
    assert run.status == 0, run.output[-4000:]
    found(host)
    again = host.stack("cudnn", **archive)
    assert again.recap[host.host]["changed"] == 0, again.output


def test_unpacking_that_was_cut_off_begins_again(host, archive):
    host.run("rm /opt/allreduce/cudnn/*/.whole; rm -r /opt/allreduce/cudnn/*/lib")
    run = host.stack("cudnn", **archive)
    assert run.status == 0, run.output[-4000:]
    found(host)


def found(host):
    """The linker finds it; whoever packed it, it is root's, readable for all and writable for root."""
    assert "/opt/allreduce/cudnn/" in host.run("ldconfig -p | grep 'libcudnn.so.8 '")
    wrong = "\\( -perm /022 -o -not -perm -444 -o -not -user root -o -not -group root \\)"
    assert host.run(f"find /opt/allreduce/cudnn -not -type l {wrong} -not -name archive.tar.xz") == ""


def test_archive_is_removed(host, archive):
    run = host.stack("cudnn", **archive, cudnn_state="absent")
    assert run.status == 0, run.output[-4000:]
    assert (
        host.run(
            "ls -d /opt/allreduce/cudnn /etc/ld.so.conf.d/*cudnn* 2>/dev/null; ldconfig -p | grep cudnn", check=False
        )
        == ""
    )
    again = host.stack("cudnn", **archive, cudnn_state="absent")
    assert again.recap[host.host]["changed"] == 0, again.output
