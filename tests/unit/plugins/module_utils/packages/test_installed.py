# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import installed as packages
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
STATUS = """Package: nvidia-smi
Status: install ok installed
Version: 535.309.01-0+deb12u1
Description: tool
 Package: not a field

Package: gone
Status: deinstall ok config-files
Version: 1

Package: dkms
Status: {dkms}
Version: 3.0.10-8
"""


@pytest.mark.parametrize(
    ("os_release", "manager"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "apt"),
        ("ID=ubuntu\nID_LIKE=debian\n", "apt"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
        ("ID=arch\n", None),
        ("", None),
    ],
)
def test_the_package_manager_follows_from_the_family(tmp_path, os_release, manager):
    files = tree(tmp_path, {"/etc/os-release": os_release})
    assert packages.package_manager(files, packages.os_release(files)) == manager


@pytest.mark.parametrize(
    ("dkms", "updates", "program", "expected"),
    [
        ("install ok installed", {}, {}, ({"nvidia-smi": "535.309.01-0+deb12u1", "dkms": "3.0.10-8"}, False)),
        ("install ok triggers-pending", {}, {}, ({"nvidia-smi": "535.309.01-0+deb12u1", "dkms": "3.0.10-8"}, False)),
        ("install ok half-configured", {}, {}, ({"nvidia-smi": "535.309.01-0+deb12u1"}, True)),
        ("install reinstreq installed", {}, {}, ({"nvidia-smi": "535.309.01-0+deb12u1", "dkms": "3.0.10-8"}, True)),
        ("install ok unpacked", {}, {"/proc/77/comm": "dpkg\n"}, ({"nvidia-smi": "535.309.01-0+deb12u1"}, False)),
        ("install ok installed", {"/var/lib/dpkg/updates/0001": ""}, {}, ({"nvidia-smi": "535.309.01-0+deb12u1", "dkms": "3.0.10-8"}, True)),
    ],
)  # fmt: skip
def test_dpkg(tmp_path, dkms, updates, program, expected):
    files = tree(tmp_path, {"/var/lib/dpkg/status": STATUS.format(dkms=dkms), **updates, **program})
    assert packages.read_dpkg(files, ["*nvidia*", "dkms", "gone"]) == expected


def test_removed_packages_that_left_their_configuration(tmp_path):
    files = tree(tmp_path, {"/var/lib/dpkg/status": STATUS.format(dkms="deinstall ok config-files")})
    assert packages.read_dpkg_leftovers(files, ["*nvidia*", "dkms"])["dkms"] == "3.0.10-8"
    assert "nvidia-smi" not in packages.read_dpkg_leftovers(files, ["*"])


def test_the_daemon_of_unattended_upgrades_is_no_upgrade(tmp_path):
    daemon = {"/proc/77/comm": "unattended-upgr\n"}
    files = tree(tmp_path, {"/var/lib/dpkg/status": STATUS.format(dkms="install ok unpacked"), **daemon})
    assert packages.read_dpkg(files, ["x"]) == ({}, True)


def test_no_pattern_matches_nothing():
    assert not packages.matcher([])("dkms")


def test_rpm():
    text = "kmod-nvidia-open-dkms 3:580.95.05-1.el8\nbash 0:4.4.20-5.el8\nnvidia-driver 0:580.95.05-1.el8\n"
    assert packages.parse_rpm(text, ["*nvidia*"]) == {
        "kmod-nvidia-open-dkms": "3:580.95.05-1.el8",
        "nvidia-driver": "580.95.05-1.el8",
    }


def test_only_the_distributions_own_archive_counts(tmp_path):
    files = tree(tmp_path, {
        "/etc/apt/sources.list": "deb http://a.example/debian bookworm main\ndeb http://a.example/debian bookworm-updates main non-free\n",
        "/etc/apt/sources.list.d/other.list": "deb http://d.example/linux/debian bookworm stable\ndeb http://p.example/x bookworm main\n",
        "/etc/apt/sources.list.d/old.save": "deb http://a.example/debian bookworm contrib\n",
        "/var/lib/apt/lists/p.example_x_dists_bookworm_InRelease": "Origin: Somebody Else\nLabel: x\n",
        "/var/lib/apt/lists/a.example_debian_dists_bookworm_InRelease": "Origin: Debian\n",
    })  # fmt: skip
    mirrors = packages.read_apt_mirrors(files, DEBIAN)
    assert [(entry["uri"], entry["suite"]) for entry in mirrors] == [
        ("http://a.example/debian", "bookworm"), ("http://a.example/debian", "bookworm-updates"),
    ]  # fmt: skip
    assert packages.enabled_components(mirrors, DEBIAN) == ["main"]


def test_components_are_in_archive_order():
    mirrors = [{"uri": "u", "suite": "bookworm", "components": ["non-free", "extra", "main", "contrib"]}]
    assert packages.enabled_components(mirrors, DEBIAN) == ["main", "contrib", "non-free", "extra"]
