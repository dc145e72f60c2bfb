# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments as conda 26.7.1 and py-rattler 0.28.0 record them: what is installed, and what is not as it was installed."""

import hashlib
import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import conda_plan
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.conda_prefix import read_prefix
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

PREFIX = "/envs/main"
# As conda 26.7.1 wrote it, without the lines that nobody reads.
HISTORY = "==> 2026-11-23 14:43:41 <==\n# cmd: conda create\n# conda version: 26.7.1\n+file:///c/linux-64::jpeg-3.0-0\n"


def entry(path, text, **more):
    one = {"_path": path, "path_type": "hardlink", "sha256": digest(text), "size_in_bytes": len(text)}
    one.update(more)
    return one


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def record(name, entries, **more):
    one = {"name": name, "version": "3.0", "build": "0", "sha256": "a" * 64, "paths_data": {"paths": entries}}
    one.update(more)
    return json.dumps(one)


def environment(root, records, files=(), history=HISTORY):
    """Write an environment whose files are older than its records."""
    written = {f"{PREFIX}/{path}": content for path, content in dict(files).items()}
    written.update({f"{PREFIX}/conda-meta/{name}-3.0-0.json": text for name, text in records.items()})
    if history is not None:
        written[PREFIX + "/conda-meta/history"] = history
    found = tree(root, written)
    for path in dict(files):
        touch(root, path, 1000)
    for name in records:
        touch(root, f"conda-meta/{name}-3.0-0.json", 2000)
    return found


def touch(root, path, when):
    os.utime(str(root) + PREFIX + "/" + path, (when, when), follow_symlinks=False)


def test_what_is_installed(tmp_path):
    found = read_prefix(environment(tmp_path, {"jpeg": record("jpeg", [entry("lib/a", "a")])}, {"lib/a": "a"}), PREFIX)
    assert found == {
        "state": "complete",
        "packages": {"jpeg": {"version": "3.0", "build": "0", "sha256": "a" * 64}},
        "changed_files": {},
    }


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, "absent"),
        ({"/envs/other/x": ""}, "absent"),
        ({"/envs/main": ""}, "foreign"),
        ({"/envs/main/x": ""}, "foreign"),
        ({"/envs/main/conda-meta/history": ""}, "interrupted"),
        ({"/envs/main/conda-meta/x.txt": ""}, "interrupted"),
        ({"/envs/main/conda-meta/history": HISTORY}, "complete"),
    ],
)
def test_states(tmp_path, files, state):
    assert read_prefix(tree(tmp_path, files), PREFIX)["state"] == state


NEWER = 3000
FILES = [
    ([entry("lib/a", "abc")], {"lib/a": "abc"}, None, None),
    ([entry("lib/a", "abc")], {"lib/a": "abc"}, NEWER, None),  # only its time is another
    ([entry("lib/a", "abc")], {"lib/a": "abd"}, NEWER, "lib/a"),
    ([entry("lib/a", "abc")], {"lib/a": "abcd"}, None, "lib/a"),
    ([entry("lib/a", "abc")], {}, None, "lib/a"),
    ([entry("lib/a", "abc")], {"lib/a": ("link", "b")}, None, "lib/a"),
    ([entry("bin/p", "", path_type="softlink")], {"bin/p": ("link", "p3")}, None, None),
    ([entry("bin/p", "", path_type="softlink")], {"bin/p": ""}, None, "bin/p"),
    # conda keeps the size that the file has in the package, rattler that in the prefix.
    ([entry("bin/p", "PLACE", prefix_placeholder="PLACE", sha256_in_prefix=digest("/envs"))], {"bin/p": "/envs"}, NEWER, None),
    ([entry("bin/p", "PLACE+", prefix_placeholder="PLACE", sha256_in_prefix=digest("/envs"))], {"bin/p": "/envs"}, NEWER, None),
    ([entry("bin/p", "PLACE", prefix_placeholder="PLACE", sha256_in_prefix=digest("/envs"))], {"bin/p": "/evil"}, NEWER, "bin/p"),
    # Empty, as after a power cut.
    ([entry("bin/p", "PLACE", prefix_placeholder="PLACE", sha256_in_prefix=digest("/envs"))], {"bin/p": ""}, None, "bin/p"),
    # Compiled while it was installed: nobody knows what it is.
    ([{"_path": "lib/a.pyc", "path_type": "pyc_file"}], {"lib/a.pyc": "x"}, NEWER, None),
    ([{"_path": "lib/a.pyc", "path_type": "pyc_file"}], {}, None, "lib/a.pyc"),
    ([{"_path": "share", "path_type": "directory"}], {"share/x": ""}, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "files", "when", "changed"), FILES)
def test_files(tmp_path, entries, files, when, changed):
    found = environment(tmp_path, {"jpeg": record("jpeg", entries)}, files)
    for path in files if when else ():
        touch(tmp_path, path, when)
    assert read_prefix(found, PREFIX)["changed_files"] == ({"jpeg": changed} if changed else {})


def test_a_file_of_two_packages_is_one_of_theirs(tmp_path):
    records = {"a": record("a", [entry("lib/x", "of a")]), "b": record("b", [entry("lib/x", "of b")])}
    found = environment(tmp_path, records, {"lib/x": "of b"})
    touch(tmp_path, "lib/x", NEWER)
    assert read_prefix(found, PREFIX)["changed_files"] == {}
    (tmp_path / "envs" / "main" / "lib" / "x").write_text("of c")
    assert read_prefix(found, PREFIX)["changed_files"] == {"a": "lib/x", "b": "lib/x"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": "1"}'])
def test_a_record_that_cannot_be_read(tmp_path, text):
    found = read_prefix(environment(tmp_path, {"jpeg": text}), PREFIX)
    assert found["packages"] == {} and found["changed_files"] == {"jpeg-3.0-0": "conda-meta/jpeg-3.0-0.json"}


PACKAGE = {"version": "3.0", "build": "0", "sha256": "a" * 64}
SOUND = {"state": "complete", "packages": {"jpeg": PACKAGE}, "changed_files": {}}
LOCKED = {"jpeg": dict(PACKAGE, url="https://example.org/linux-64/jpeg-3.0-0.conda", subdir="linux-64")}


@pytest.mark.parametrize(
    ("found", "state", "step"),
    [
        (SOUND, "present", None),
        (dict(SOUND, state="interrupted"), "present", "rebuild"),
        (dict(SOUND, changed_files={"jpeg": "lib/x"}), "present", "rebuild"),
        (dict(SOUND, packages={}), "present", "rebuild"),
        (dict(SOUND, packages={"jpeg": PACKAGE, "tiff": PACKAGE}), "present", "rebuild"),
        (dict(SOUND, packages={"jpeg": dict(PACKAGE, version="3.1")}), "present", "rebuild"),
        (dict(SOUND, packages={"jpeg": dict(PACKAGE, build="1")}), "present", "rebuild"),
        (dict(SOUND, packages={"jpeg": dict(PACKAGE, sha256="b" * 64)}), "present", "rebuild"),
        (dict(SOUND, packages={"jpeg": dict(PACKAGE, sha256=None)}), "present", "rebuild"),
        (dict(SOUND, state="absent", packages={}), "present", "create"),
        (dict(SOUND, state="absent", packages={}), "absent", None),
        (dict(SOUND, state="interrupted"), "absent", "remove"),
        (SOUND, "absent", "remove"),
    ],
)
def test_steps(found, state, step):
    assert conda_plan.plan(found, LOCKED, state) == (step, [])


@pytest.mark.parametrize("state", ["present", "absent"])
def test_nothing_is_done_to_what_is_no_environment(state):
    step, problems = conda_plan.plan(dict(SOUND, state="foreign"), LOCKED, state)
    assert (step, [one["code"] for one in problems]) == (None, ["conda_foreign"])
