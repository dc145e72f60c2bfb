# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import re
from fnmatch import fnmatchcase

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import (
    hold as package_hold,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import (
    hold_apt as package_hold_apt,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import (
    hold_dnf as package_hold_dnf,
)

HOLD = {
    "name": "driver",
    "packages": ["*nvidia*"],
    "excluded": ["nvidia-container*"],
    "services": [],
    "module_stream": None,
    "kernel": False,
    "state": "held",
}
RPMS = (
    "nvidia-driver 3:580.65.06-1.el9\nnvidia-container-toolkit 0:1.18.0-1\nkernel 0:5.14.0-1.el9\n"
    "kernel 0:5.14.0-2.el9\nbash 0:5.1-1.el9\n"
)
LIST = "/etc/dnf/plugins/versionlock.list"


def el(tmp_path, locks="", plugin=True):
    plugins = tmp_path / "etc/dnf/plugins"
    plugins.mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text("ID=rocky\nID_LIKE='rhel fedora'\n")
    if plugin:
        (plugins / "versionlock.conf").write_text("[main]\nenabled = 1\n")
        (plugins / "versionlock.list").write_text(locks)
    return FileTree(str(tmp_path))


def locks_of(tree, **changes):
    plan = package_hold.plan(tree, lambda _arguments: RPMS, {**HOLD, **changes})
    return {wanted["path"]: wanted["content"] for wanted, _found in plan["files"]}[tree.path(LIST)]


def test_installed_versions_are_locked_in_a_block(tmp_path):
    assert locks_of(el(tmp_path, "bash-0:5.1-1.el9.*")) == (
        "bash-0:5.1-1.el9.*\n# BEGIN allreduce hold driver\nnvidia-driver-3:580.65.06-1.el9.*\n"
        "# END allreduce hold driver\n"
    )


def test_locks_are_the_same_the_next_time(tmp_path):
    tree = el(tmp_path, "bash-0:5.1-1.el9.*\n")
    first = locks_of(tree)
    (tmp_path / LIST[1:]).write_text(first)
    assert locks_of(tree) == first


def test_holds_keep_their_places_in_the_list(tmp_path):
    tree = el(tmp_path, locks_of(el(tmp_path / "first")))
    both = locks_of(tree, name="shell", packages=["bash"])
    (tmp_path / LIST[1:]).write_text(both)
    assert both.count("# BEGIN") == 2
    assert locks_of(tree) == locks_of(tree, name="shell", packages=["bash"]) == both


def test_release_leaves_what_is_not_ours_to_name(tmp_path):
    foreign = "# Added locks on Mon\nbash-0:5.1-1.el9.*\n!nvidia-driver-3:590.48.01-1.el9.*\n"
    tree = el(tmp_path, foreign + "nvidia-driver-3:535.54.03-1.el9.*\n")
    assert locks_of(tree, state="released") == foreign


def test_every_installed_kernel_is_locked(tmp_path):
    assert re.findall(r"(?m)^kernel-.*", locks_of(el(tmp_path), kernel=True)) == [
        "kernel-0:5.14.0-1.el9.*",
        "kernel-0:5.14.0-2.el9.*",
    ]


def test_without_the_plugin_nothing_is_held_and_that_is_said(tmp_path):
    plan = package_hold.plan(el(tmp_path, plugin=False), lambda _arguments: RPMS, HOLD)
    assert "python3-dnf-plugin-versionlock" in plan["warning"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("nvidia-driver-3:580.65.06-1.el9.*\n", "nvidia-driver"),
        ("kmod-nvidia-open-dkms-3:595.91.07-1.el9.noarch", "kmod-nvidia-open-dkms"),
        ("libnccl-2.17.1-1+cuda12.1.*", "libnccl"),
        ("!nvidia-driver-3:580.65.06-1.el9.*", ""),
        ("# nvidia-driver-3:580.65.06-1.el9", ""),
        ("\n", ""),
    ],
)
def test_locked_names(line, name):
    assert package_hold_dnf.locked_name(line) == name


@pytest.mark.parametrize("pattern", ["*nvidia*", "libcuda1", "g++-1?", "a.b*"])
@pytest.mark.parametrize("name", ["libnvidia-ml1", "libcuda1", "libcuda11", "g++-12", "a.bc", "axbc"])
def test_expressions_mean_what_the_shell_patterns_mean(pattern, name):
    assert bool(re.fullmatch(package_hold_apt.expression(pattern), name)) == fnmatchcase(name, pattern)


def test_dpkg_is_waited_for_and_its_reason_is_told():
    answers = [(2, "dpkg: error: dpkg frontend lock was locked by another process with pid 7")] * 2 + [(0, "")]
    told = []

    def run(lines):
        told.append(lines)
        return answers.pop(0)

    package_hold.select(run, {"b": "hold", "a": "install"}, 60, wait=0)
    assert told == ["a install\nb hold\n"] * 3
    with pytest.raises(ValueError, match="pid 7"):
        package_hold.select(lambda _lines: (2, "locked by another process with pid 7"), {"a": "hold"}, 0)


def test_a_lock_that_cannot_be_made_is_not_waited_for():
    """As on a file system that accepts no writes."""
    said = "dpkg: error: unable to open/create dpkg frontend lock for directory /var/lib/dpkg: Read-only file system"
    answers = [(2, said)]
    with pytest.raises(ValueError, match="Read-only file system"):
        package_hold.select(lambda _lines: answers.pop(), {"a": "hold"}, 600, wait=0)
