# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading kernel parameters, and the files that set them, from a recorded machine."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import sysctl
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60\n", "60"),
        ("4096\t131072\t33554432\n", "4096 131072 33554432"),
        ("always [madvise] never\n", "madvise"),
        ("[always] madvise never", "always"),
        ("", ""),
        (None, None),
    ],
)
def test_what_a_switch_is_set_to(text, expected):
    assert sysctl.selected(text) == expected


@pytest.mark.parametrize(
    ("key", "dotted", "path"),
    [
        ("vm.swappiness", "vm.swappiness", "/proc/sys/vm/swappiness"),
        (
            "net/ipv4/conf/eth0.100/rp_filter",
            "net.ipv4.conf.eth0/100.rp_filter",
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
        ),
        (
            "net.ipv4.conf.eth0/100.rp_filter",
            "net.ipv4.conf.eth0/100.rp_filter",
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
        ),
    ],
)
def test_both_spellings_of_a_key(key, dotted, path):
    assert sysctl.normalise(key) == dotted
    assert sysctl.path_of(dotted) == path


def lines(tmp_path, files, *keys):
    found = sysctl.read_lines(tree(tmp_path, files), set(keys or ["vm.swappiness"]))
    return [(one["file"], one["line"], one["value"]) for one in found]


def test_files_are_read_in_the_order_of_their_names_whatever_their_directory(tmp_path):
    files = {
        "/etc/sysctl.d/50-b.conf": "vm.swappiness = 2\n",
        "/usr/lib/sysctl.d/90-c.conf": "# first\n\nvm.swappiness=3\n",
        "/run/sysctl.d/10-a.conf": "vm/swappiness =1\n",
        "/etc/sysctl.d/README": "vm.swappiness = 9\n",
        "/etc/sysctl.conf": "  vm.swappiness  =  4 \n",
    }
    assert lines(tmp_path, files) == [
        ("/run/sysctl.d/10-a.conf", 1, "1"),
        ("/etc/sysctl.d/50-b.conf", 1, "2"),
        ("/usr/lib/sysctl.d/90-c.conf", 3, "3"),
        ("/etc/sysctl.conf", 1, "4"),
    ]


def test_a_file_of_etc_stands_for_one_of_the_same_name(tmp_path):
    files = {
        "/etc/sysctl.d/50-x.conf": ("link", "/dev/null"),
        "/usr/lib/sysctl.d/50-x.conf": "vm.swappiness = 1\n",
        "/run/sysctl.d/60-y.conf": "vm.swappiness = 2\n",
        "/lib/sysctl.d/60-y.conf": "vm.swappiness = 3\n",
    }
    assert lines(tmp_path, files) == [("/run/sysctl.d/60-y.conf", 1, "2")]


def test_debians_link_to_sysctl_conf_counts_once_and_last(tmp_path):
    files = {"/etc/sysctl.d/99-sysctl.conf": ("link", "../sysctl.conf"), "/etc/sysctl.conf": "-vm.swappiness = 7\n"}
    files["/etc/sysctl.d/99-z.conf"] = "vm.swappiness = 8\n"
    assert lines(tmp_path, files) == [("/etc/sysctl.d/99-z.conf", 1, "8"), ("/etc/sysctl.conf", 1, "7")]


def test_patterns_comments_and_other_keys_are_left_out(tmp_path):
    text = "#vm.swappiness = 1\n;vm.swappiness=2\nvm.* = 3\n-vm.swappiness\nvm.dirty_ratio = 4\n"
    assert lines(tmp_path, {"/etc/sysctl.d/a.conf": text}) == []


def test_a_pattern_means_every_processor(tmp_path):
    made = tree(tmp_path, {**server(), "/sys/devices/system/cpu/cpufreq/policy0": "x"})
    pattern = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
    assert sysctl.expand(made, pattern) == [pattern.replace("[0-9]*", str(cpu)) for cpu in range(4)]
    assert sysctl.read_switch(made, pattern) == "schedutil"
    (tmp_path / "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor").write_text("performance\n")
    assert sysctl.read_switch(made, pattern) == "performance, schedutil"
    assert sysctl.read_switch(made, "/proc/sys/none") is None
