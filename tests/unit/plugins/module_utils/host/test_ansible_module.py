# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.ansible_module import program_output, replace_file


class Module:
    """The parts of AnsibleModule that are used, with one program."""

    def __init__(self, tmpdir, rc=0):
        self.tmpdir, self.rc, self.ran = str(tmpdir), rc, []

    def get_bin_path(self, name):
        return "/usr/bin/rpm" if name == "rpm" else None

    def run_command(self, arguments, environ_update):
        self.ran.append((arguments, environ_update["LC_ALL"]))
        return self.rc, "output", "error"

    def atomic_move(self, source, target):
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


def test_programs_speak_english(tmp_path):
    module = Module(tmp_path)
    program_output(module, "/")(["rpm", "-qa"])
    assert module.ran == [(["/usr/bin/rpm", "-qa"], "C")]


def test_a_checker_reads_the_new_content_before_it_is_in_place(tmp_path):
    path, seen = tmp_path / "conf", []

    def check(new):
        with open(new, "rb") as stream:
            seen.append((stream.read(), path.exists()))

    replace_file(Module(tmp_path), str(path), b"a", check)
    assert (seen, path.read_bytes()) == ([(b"a", False)], b"a")
