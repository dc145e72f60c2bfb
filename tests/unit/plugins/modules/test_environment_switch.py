# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, on environments that the real uv makes, with wheels of one module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import environment_switch as switching
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.environments import read_kept
from ansible_collections.allreduce.gpu.plugins.modules import environment_switch

from tests.support.wheel import wheel

COLLECTIONS = str(Path(environment_switch.__file__).resolve().parents[2] / ".collections")
UV = Path(sys.executable).parent / "uv"
ONE, TWO, THREE = (f".main-{digit * 12}" for digit in "123")
SAYS = "def main():\n    import sys\n    print({version!r}, sys.prefix)\n"

pytestmark = pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside this Python")


@pytest.fixture
def node(tmp_path):
    """A node with one environment in use, the second verified by nobody yet."""
    made = Node(tmp_path)
    made.make(ONE, "1.0")
    answer = made.switch(ONE, "1.0")
    assert answer["changed"], answer
    made.make(TWO, "2.0")
    return made


class Node:
    """Directories in place of a node's."""

    def __init__(self, place):
        self.place, self.envs, self.locks = place, place / "envs", place / "locks"
        for directory in (self.envs, place / "wheels"):
            directory.mkdir()

    def make(self, directory, version, text=None):
        """Make an environment with that version of package alpha."""
        wheel(
            self.place / "wheels",
            "alpha",
            version,
            SAYS.format(version=version) if text is None else text,
            scripts=["alpha"],
        )
        target = self.envs / directory
        self.uv("venv", "--relocatable", "--python", sys.executable, target)
        self.uv("pip", "install", "--python", target / "bin" / "python", "--no-index",
                "--find-links", self.place / "wheels", f"alpha=={version}")  # fmt: skip

    def uv(self, *words):
        subprocess.run(
            [UV, *words, "--quiet"], check=True, env={**os.environ, "UV_CACHE_DIR": str(self.place / "cache")}
        )

    def lock(self, version):
        return f"# request: {version[0] * 16}\nalpha=={version}\n"

    def switch(self, directory, version, check=False, **options):
        said = {
            "name": "main", "directory": directory, "lock": self.lock(version), "modules": ["alpha"], "user": "root",
            "environments": str(self.envs), "locks": str(self.locks), **options,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.environment_switch",
             json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **said}})],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": COLLECTIONS},
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def says(self):
        return subprocess.run([self.envs / "main" / "bin" / "alpha"], capture_output=True, text=True, check=True).stdout

    def there(self):
        return sorted(os.listdir(self.envs))

    def in_use(self):
        return os.readlink(self.envs / "main")

    def recorded(self):
        return (self.locks / "main.txt").read_text()


def test_the_first_environment(node):
    assert node.in_use() == ONE
    assert node.recorded() == (node.envs / ONE / "allreduce-lock.txt").read_text() == node.lock("1.0")
    assert node.says().split() == ["1.0", str(node.envs / ONE)]
    assert node.there() == [ONE, TWO, "main"]


def test_nothing_changes_where_it_is_in_use(node):
    before = (node.envs / "main").lstat().st_mtime_ns
    answer = node.switch(ONE, "1.0")
    assert not answer["changed"]
    assert (node.envs / "main").lstat().st_mtime_ns == before


def test_check_mode_shows_which_replaces_which(node):
    answer = node.switch(TWO, "2.0", check=True)
    assert answer["changed"]
    link = node.envs / "main"
    assert answer["diff"] == {"before": f"{link}: {ONE}\n", "after": f"{link}: {TWO}\n"}
    assert node.switch("", "2.0", check=True)["diff"]["after"] == f"{link}: a new one\n"
    assert not node.switch(ONE, "1.0", check=True)["changed"]
    assert (node.in_use(), node.recorded()) == (ONE, node.lock("1.0"))


def test_another_version_and_back_again(node):
    answer = node.switch(TWO, "2.0")
    assert (answer["changed"], answer["former"], answer["removed"]) == (True, ONE, [])
    assert node.says().split() == ["2.0", str(node.envs / TWO)]
    assert node.recorded() == node.lock("2.0")
    assert node.there() == [ONE, TWO, "main"]

    answer = node.switch(ONE, "1.0")
    assert (answer["changed"], node.in_use(), node.recorded()) == (True, ONE, node.lock("1.0"))
    assert node.there() == [ONE, TWO, "main"]


@pytest.mark.parametrize(
    ("keep", "left"), [(0, [THREE, "main"]), (1, [TWO, THREE, "main"]), (2, [ONE, TWO, THREE, "main"])]
)
def test_older_ones_are_pruned(node, keep, left):
    (node.envs / ".main-aaaaaaaaaaaa" / "lib").mkdir(parents=True)  # of a run that broke
    (node.envs / ".main-b-aaaaaaaaaaaa").mkdir()  # of environment main-b
    (node.envs / "..main-b-aaaaaaaaaaaa.packages").mkdir()
    for ending in ("aaaaaaaaaaaa.packages", "bbbbbbbbbbbb.former"):  # of module conda_env, which was killed
        (node.envs / f"..main-{ending}").mkdir()
    node.switch(TWO, "2.0", keep=2)
    node.make(THREE, "3.0")
    assert node.switch(THREE, "3.0", keep=keep)["changed"]
    assert node.there() == sorted([*left, ".main-b-aaaaaaaaaaaa", "..main-b-aaaaaaaaaaaa.packages"])


def test_a_link_in_the_place_of_an_older_one_goes(node):
    """As where someone moved it to another disk; what it leads to stays."""
    (node.place / "disk" / "lib").mkdir(parents=True)
    (node.envs / ".main-aaaaaaaaaaaa").symlink_to(node.place / "disk")
    (node.envs / ".main-bbbbbbbbbbbb").write_text("")
    answer = node.switch(TWO, "2.0", keep=0)
    assert answer.get("removed") == [ONE, ".main-aaaaaaaaaaaa", ".main-bbbbbbbbbbbb"], answer
    assert (node.place / "disk" / "lib").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_an_older_one_that_cannot_be_removed(node):
    busy = node.envs / ".main-aaaaaaaaaaaa"
    busy.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", busy], check=False).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        answer = node.switch(TWO, "2.0")
    finally:
        subprocess.run(["umount", busy], check=True)
    assert (
        answer["msg"]
        == f"Environment main is in use, but older ones were not removed: [Errno 16] Device or resource busy: '{busy}'."
    )
    assert (node.in_use(), node.recorded()) == (TWO, node.lock("2.0"))


@pytest.mark.parametrize(
    "program",
    [
        "import os; os.chdir(sys.prefix)",
        "import mmap; kept = mmap.mmap(os.open(sys.prefix + '/pyvenv.cfg', 0), 0, prot=1)",
    ],
    ids=["cwd", "maps"],
)
def test_what_a_process_uses_is_kept(node, program):
    program = f"import os, sys; {program}; print('there', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [node.envs / "main" / "bin" / "python", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        answer = node.switch(TWO, "2.0", keep=0)
        assert (answer["removed"], answer["used"]) == ([], [ONE])
        process.stdin.close()
    assert node.switch(TWO, "2.0", keep=0)["removed"] == [ONE]


@pytest.mark.parametrize(
    ("breaks", "code", "said"),
    [
        (lambda node: node.make(THREE, "3.0", "raise RuntimeError('no library')\n"), "environment_no_import",
         "alpha cannot be imported: RuntimeError: no library; the one before it stays in use, .main-111111111111."),
        (lambda node: node.make(THREE, "3.1"), "environment_differs", "it has alpha 3.1, and its lock 3.0; the one before it stays in use"),
        (lambda node: None, "environment_missing", "there is no {three}/bin/python; the one before it"),
    ],
)  # fmt: skip
def test_one_that_does_not_work_is_not_taken_into_use(node, breaks, code, said):
    breaks(node)
    answer = node.switch(THREE, "3.0")
    assert answer["failed"]
    assert answer["problem"]["code"] == code
    assert "Environment main was not replaced, as the new one does not work: " in answer["msg"]
    assert said.format(three=node.envs / THREE) in answer["msg"]
    assert (node.in_use(), node.recorded()) == (ONE, node.lock("1.0"))
    assert node.says().startswith("1.0 ")


def test_a_file_that_was_changed_is_named(node):
    (file,) = (node.envs / TWO).glob("lib/python3*/site-packages/alpha.py")
    with file.open("a", encoding="utf-8") as stream:
        stream.write("# by hand\n")
    answer = node.switch(TWO, "2.0")
    assert answer["problem"]["detail"] == {"package": "alpha", "path": str(file.relative_to(node.envs / TWO))}


def test_an_older_one_that_does_not_work_is_no_longer_one_to_go_back_to(node):
    """Else each run would find it verified, and fail."""
    node.switch(TWO, "2.0")
    (file,) = (node.envs / ONE).glob("lib/python3*/site-packages/alpha.py")
    file.write_text("by hand\n")
    assert {one["directory"] for one in read_kept(FileTree("/"), str(node.envs))} == {ONE, TWO}
    assert node.switch(ONE, "1.0", check=True)["changed"] and (node.envs / ONE / "allreduce-lock.txt").exists()
    assert node.switch(ONE, "1.0")["problem"]["code"] == "environment_changed_file"
    assert {one["directory"] for one in read_kept(FileTree("/"), str(node.envs))} == {TWO}
    assert (node.in_use(), node.recorded()) == (TWO, node.lock("2.0"))


def test_a_package_that_the_lock_lacks(node):
    assert node.switch(TWO, "2.0", lock="# request: 2\n")["problem"]["detail"]["locked"] == "none"
    assert node.switch(TWO, "2.0", lock="# request: 2\n", conda_lock="@EXPLICIT\n")["changed"]
    assert (node.locks / "main.conda.txt").read_text() == "@EXPLICIT\n"
    assert "failed" not in node.switch(TWO, "2.0", lock="# request: 2\n", compiled={"alpha": "2.0"})


def test_the_one_in_use_that_does_not_work(node):
    answer = node.switch(ONE, "1.0", modules=["beta"])
    assert (
        "Environment main, which is in use, does not work: beta cannot be imported: ModuleNotFoundError"
        in answer["msg"]
    )
    assert (node.envs / ONE / "allreduce-lock.txt").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"directory": "main"}, "directory is 'main': write .main- and twelve hexadecimal digits"),
        ({"directory": ".other-111111111111"}, "directory is '.other-111111111111'"),
        ({"directory": ""}, "directory is ''"),
        ({"directory": "/tmp/.main-111111111111"}, "directory is '/tmp/"),
        ({"keep": -1}, "keep is -1: write 0 or more"),
    ],
)
def test_bad_input(node, options, said):
    answer = node.switch(**{"directory": ONE, "version": "1.0", **options})
    assert answer["failed"] and said in answer["msg"]


def test_where_its_lock_cannot_be_recorded_the_one_before_stays_in_use(node):
    """As on a disk that is full: what needs room is written before the link changes."""
    (node.locks / "main.txt.new").mkdir()
    answer = node.switch(TWO, "2.0")
    assert answer["failed"]
    assert answer["msg"].startswith("Environment main was not activated: ")
    assert (node.in_use(), node.recorded()) == (ONE, node.lock("1.0"))
    (node.locks / "main.txt.new").rmdir()
    assert node.switch(TWO, "2.0")["changed"]
    assert (node.in_use(), node.recorded(), os.listdir(node.locks)) == (TWO, node.lock("2.0"), ["main.txt"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_where_the_disk_of_the_locks_is_full_it_says_so(node):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", node.locks], check=False).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        (node.locks / "filler").write_bytes(bytes(4096))
        answer = node.switch(TWO, "2.0")
        assert os.listdir(node.locks) == ["filler"]
    finally:
        subprocess.run(["umount", node.locks], check=True)
    assert answer["msg"] == (
        f"Environment main was not activated, as the disk with {node.locks} is full (0 KiB are free): free some space there; the one"
        f" before it stays in use, {ONE}."
    )
    assert (node.in_use(), node.recorded()) == (ONE, node.lock("1.0"))


@pytest.fixture
def former(tmp_path):
    """A node from before there were links."""
    made = Node(tmp_path)
    made.make("main", "1.0")
    made.locks.mkdir()
    (made.locks / "main.txt").write_text(made.lock("1.0"))
    return made


def test_a_directory_of_its_name_becomes_the_environment(former):
    assert former.switch(ONE, "1.0", check=True)["changed"]
    assert former.switch(ONE, "1.0")["changed"]
    assert (former.in_use(), former.there()) == (ONE, [ONE, "main"])
    assert former.says().startswith("1.0 ")
    assert not former.switch(ONE, "1.0")["changed"]


def test_a_directory_of_its_name_is_kept_when_another_replaces_it(former):
    former.make(TWO, "2.0")
    answer = former.switch(TWO, "2.0")
    assert (answer["changed"], answer["former"]) == (True, "")
    assert former.there() == [TWO, ".main-former", "main"]
    assert (former.envs / ".main-former" / "allreduce-lock.txt").read_text() == former.lock("1.0")
    assert former.says().startswith("2.0 ")


@pytest.mark.parametrize("made", [True, False], ids=["replaced", "adopted"])
def test_a_directory_comes_back_where_the_link_cannot_be_made(former, made, monkeypatch):
    if made:
        former.make(TWO, "2.0")
    place = switching.Place("main", TWO, str(former.envs), str(former.locks))
    rename = os.rename

    def fails(source, target):
        if source.endswith(".link"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(switching.os, "rename", fails)
    with pytest.raises(OSError, match="Input/output"):
        switching.switch(place, {"allreduce-lock.txt": former.lock("2.0")})
    assert not (former.envs / "main").is_symlink()
    assert former.says().startswith("1.0 ")
    assert former.recorded() == former.lock("1.0")
