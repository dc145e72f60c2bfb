# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import sys

import pytest
from ansible.module_utils import compat
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.allreduce.gpu.plugins.module_utils.host.ansible_module import (
    label,
    program_output,
    program_runner,
    replace_file,
)


class Module:
    """The parts of AnsibleModule that are used, with one program."""

    def __init__(self, tmpdir, rc=0):
        self.tmpdir, self.rc, self.ran, self.in_place = str(tmpdir), rc, [], []

    def get_bin_path(self, name):
        return {"rpm": "/usr/bin/rpm", "sh": "/bin/sh", "broken": os.devnull}.get(name)

    def run_command(self, arguments, cwd, environ_update):
        self.ran.append((arguments, cwd, environ_update["LC_ALL"]))
        return self.rc, "output", "error"

    def atomic_move(self, source, target, unsafe_writes):
        self.in_place.append(unsafe_writes)
        with open(source, "rb") as stream, open(target, "wb") as copy:
            copy.write(stream.read())


@pytest.mark.parametrize(
    ("program", "rc", "root", "output"),
    [
        ("rpm", 0, "/", "output"),
        ("rpm", 1, "/", None),
        ("dpkg", 0, "/", None),
        ("rpm", 0, "/srv/recorded", None),
    ],
)
def test_output_of_a_program(tmp_path, program, rc, root, output):
    assert program_output(Module(tmp_path, rc), root)([program, "-qa"]) == output


def test_programs_speak_english_where_every_program_may_be(tmp_path):
    module = Module(tmp_path)
    program_output(module, "/")(["rpm", "-qa"])
    assert module.ran == [(["/usr/bin/rpm", "-qa"], "/", "C")]


@pytest.mark.parametrize(
    ("arguments", "data", "answer"),
    [
        (["sh", "-c", "cat; echo $LC_ALL"], "\u00e9\n", (0, "\u00e9\nC\n")),
        (["sh", "-c", "cat; pwd; echo not told >&2"], None, (0, "/\n")),
        (["sh", "-c", "echo out; echo locked >&2; exit 2"], None, (2, "out\nlocked\n")),
        (["sh", "-c", "echo locked >&2; exit 2"], "more than a pipe holds" * 10000, (2, "locked\n")),
        (["sh", "-c", "printf '\\377'"], None, (0, "\ufffd")),
        (["broken"], None, (127, "Permission denied")),
        (["missing"], None, (127, "there is no such program")),
    ],
    ids=["input", "no input", "failed", "ended before it read", "no text", "no program", "missing"],
)
def test_a_program_gets_its_input_and_its_end_is_an_answer(tmp_path, arguments, data, answer):
    assert program_runner(Module(tmp_path))(arguments, data) == answer


def test_a_checker_reads_the_new_content_before_it_is_in_place(tmp_path):
    path, seen = tmp_path / "conf", []

    def check(new):
        with open(new, "rb") as stream:
            seen.append((stream.read(), path.exists()))

    replace_file(Module(tmp_path), str(path), b"a", check)
    assert (seen, path.read_bytes()) == ([(b"a", False)], b"a")


def test_a_new_file_is_on_the_disk_before_it_has_its_name_and_a_copy_after(tmp_path, monkeypatch):
    path, flushed = tmp_path / "conf", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append((os.fstat(descriptor).st_size, path.exists())))
    replace_file(Module(tmp_path), str(path), b"ab")
    assert flushed == [(2, False), (2, True)]


@pytest.mark.parametrize("in_place", [False, True])
def test_only_what_cannot_be_replaced_is_written_in_place(tmp_path, in_place):
    module = Module(tmp_path)
    replace_file(module, str(tmp_path / "conf"), b"a", in_place=in_place)
    assert module.in_place == [in_place]


class Labelled(AnsibleModule):
    """Ansible's own module on a host with SELinux: new files are user_tmp_t, as in /tmp, and the policy has etc_t for all."""

    def __init__(self, tmpdir):
        self._tmpdir, self.check_mode, self._diff, self.types = str(tmpdir), False, False, {}
        self._created_files, self._debug, self._verbosity, self.params = set(), False, 0, {"unsafe_writes": False}

    def selinux_enabled(self):
        return True

    def selinux_context(self, path):
        return ["system_u", "object_r", self.types.get(os.stat(path).st_ino, "user_tmp_t"), "s0"]

    def selinux_default_context(self, path, mode=0):
        return ["system_u", "object_r", "etc_t", "s0"]

    def set_context_if_different(self, path, context, changed, diff=None):
        self.types[os.stat(path).st_ino] = context[2]
        return True


@pytest.mark.parametrize("there", [None, "system_conf_t"])
def test_a_file_that_comes_from_a_temporary_directory_does_not_keep_its_label(tmp_path, there):
    """A new one gets that of the policy, an old one keeps its own: a rename alone would bring user_tmp_t along."""
    path, module = tmp_path / "90-allreduce.conf", Labelled(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    if there:
        path.write_text("old")
        module.types[path.stat().st_ino] = there
    replace_file(module, str(path), b"new")
    assert path.read_bytes() == b"new"
    assert module.selinux_context(path)[2] == (there or "etc_t")


class Policy:
    """libselinux of a node whose policy has a label for some paths."""

    def __init__(self, labels, enabled=1, refuses=False):
        self.labels, self.enabled, self.refuses, self.given = labels, enabled, refuses, {}

    def is_selinux_enabled(self):
        return self.enabled

    def matchpathcon(self, path, mode):
        if path not in self.labels:
            raise OSError(2, "No such file or directory")
        return [0, self.labels[path]]

    def lsetfilecon(self, path, context):
        if self.refuses:
            raise OSError(95, "Operation not supported")
        self.given[path] = context


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        (Policy({"/home/a/.ssh": "ssh_home_t"}), {"/home/a/.ssh": "ssh_home_t"}),
        (Policy({}), {}),
        (Policy({"/home/a/.ssh": "ssh_home_t"}, enabled=0), {}),
        (Policy({"/home/a/.ssh": "ssh_home_t"}, refuses=True), {}),
    ],
    ids=["labelled", "no label", "without SELinux", "a file system without labels"],
)
def test_a_new_directory_has_the_label_of_the_policy(monkeypatch, policy, given):
    monkeypatch.setattr(compat, "selinux", policy, raising=False)
    monkeypatch.setitem(sys.modules, "ansible.module_utils.compat.selinux", policy)
    label("/home/a/.ssh")
    assert policy.given == given


def test_without_libselinux_a_directory_is_made_all_the_same(monkeypatch, tmp_path):
    monkeypatch.delattr(compat, "selinux", raising=False)
    monkeypatch.setitem(sys.modules, "ansible.module_utils.compat.selinux", None)
    label(str(tmp_path))
