# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, between two nodes that are two directories; an ssh of a few lines goes from one to the other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import environment_archive

COLLECTIONS = str(Path(environment_archive.__file__).resolve().parents[2] / ".collections")
# Runs what ssh is given, where the other node has its archives; BREAKS: after so many bytes the connection is lost, once.
SSH = """#!/bin/sh
while [ "$#" -gt 1 ]; do [ "$1" = away ] && {{ echo 'Connection refused' >&2; exit 255; }}; shift; done
echo "$1" >> {place}/asked
command=$(echo "$1" | sed 's,/two/,/one/,')
if [ -e {place}/breaks ]; then rm {place}/breaks; sh -c "$command" | head -c 3000; exit 255; fi
exec sh -c "$command"
"""
RUNUSER = """#!/bin/sh
[ "$2" = trainer ] || { echo "runuser: user $2 does not exist" >&2; exit 1; }
shift 3; exec "$@"
"""


@pytest.fixture
def place(tmp_path):
    """Two nodes; the first has the environment, the second one of the same interpreter with nothing in it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("ssh", SSH.format(place=tmp_path)), ("runuser", RUNUSER)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for node in ("one", "two"):
        base = tmp_path / node / "envs" / "main"
        (base / "bin").mkdir(parents=True)
        (base / "bin" / "python").symlink_to("/usr/bin/python3")
        (base / "pyvenv.cfg").write_text(f"home = /usr/bin\nof = {node}\n")
    base = tmp_path / "one" / "envs" / "main"
    (base / ".lock").write_text("uv's")
    (base / "lib").mkdir()
    (base / "lib" / "data").write_bytes(bytes(range(256)) * 40)
    (base / "bin" / "torchrun").write_text("#!/bin/sh\n")
    (base / "bin" / "torchrun").chmod(0o755)
    os.utime(base / "lib" / "data", (1_700_000_000, 1_700_000_000.5))
    (tmp_path / "two" / "envs" / "main" / "old").write_text("what is replaced")
    return tmp_path


def run(place, node, state, check=False, **options):
    said = {
        "name": "main", "state": state, "environments": f"{place}/{node}/envs", "archives": f"{place}/{node}/archives",
        **options,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.environment_archive",
         json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **said}})],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS, "PATH": f"{place}/bin:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def packed(place):
    found = run(place, "one", "packed")
    return {key: found[key] for key in ("sha256", "bytes")}


def unpacked(place, archive, **options):
    return run(place, "two", "unpacked", **{"address": "10.0.0.1", **archive, **options})


def files(place, node):
    base = place / node / "envs"
    return {
        str(path.relative_to(base)): os.readlink(path)
        if path.is_symlink()
        else (path.stat().st_mode, path.stat().st_mtime, path.read_bytes())
        for path in base.rglob("*")
        if path.name not in ("pyvenv.cfg", ".lock") and not path.is_dir()
    }


def test_an_environment_goes_from_one_node_to_another(place):
    archive = packed(place)
    assert unpacked(place, archive)["changed"] is True
    assert files(place, "two") == files(place, "one")
    assert (place / "two" / "envs" / "main" / "pyvenv.cfg").read_text().endswith("of = two\n")
    assert not (place / "two" / "envs" / "main" / ".lock").exists()
    assert list((place / "two" / "archives").iterdir()) == []
    assert [path.name for path in (place / "two" / "envs").iterdir()] == ["main"]


def test_an_environment_whose_directory_has_another_name(place):
    """That of the node which packs may have another one than that of the node which unpacks; the archive is called like the environment."""
    for node, directory in (("one", "main"), ("two", ".main-0123456789ab")):
        (place / node / "envs" / "main").rename(place / node / "envs" / directory)
    archive = packed(place)
    assert unpacked(place, archive, directory=".main-0123456789ab")["changed"] is True
    assert [path.name for path in (place / "two" / "envs").iterdir()] == [".main-0123456789ab"]
    assert (place / "two" / "envs" / ".main-0123456789ab" / "bin" / "torchrun").exists()


def test_the_same_files_make_the_same_archive(place):
    first = packed(place)
    (place / "one" / "archives" / "main.tar").unlink()
    assert packed(place) == first


@pytest.mark.parametrize(("node", "state"), [("one", "packed"), ("two", "unpacked")])
def test_check_mode_changes_nothing(place, node, state):
    before = files(place, "one"), files(place, "two")
    found = run(place, node, state, check=True, address="10.0.0.1", sha256="", bytes=0)
    assert found["changed"] is True
    assert (files(place, "one"), files(place, "two")) == before
    assert not (place / node / "archives").exists()


@pytest.mark.parametrize("check", [False, True])
def test_an_archive_is_removed_once(place, check):
    packed(place)
    assert run(place, "one", "absent", check=check)["changed"] is True
    assert (place / "one" / "archives" / "main.tar").exists() is check
    if not check:
        assert run(place, "one", "absent")["changed"] is False


def test_what_is_kept_is_given_to_others(place):
    archive = packed(place)
    unpacked(place, archive, keep=True)
    assert (place / "two" / "archives" / "main.tar").read_bytes() == (
        place / "one" / "archives" / "main.tar"
    ).read_bytes()


def test_a_connection_that_breaks_goes_on_where_it_was(place):
    archive = packed(place)
    (place / "breaks").touch()
    assert unpacked(place, archive)["changed"] is True
    assert [line.split()[2] for line in (place / "asked").read_text().splitlines()] == ["+1", "+3001"]
    assert files(place, "two") == files(place, "one")


def test_what_an_interrupted_run_left_of_another_archive_is_dropped(place):
    archive = packed(place)
    (place / "two" / "archives").mkdir()
    (place / "two" / "archives" / "main.tar.part").write_bytes(b"of another archive")
    assert unpacked(place, archive)["changed"] is True
    assert files(place, "two") == files(place, "one")


def test_another_archive_than_the_one_that_was_packed_is_refused(place):
    archive, before = packed(place), files(place, "two")
    with (place / "one" / "archives" / "main.tar").open("r+b") as stream:
        stream.seek(2000)
        stream.write(b"changed by who carries it")
    found = unpacked(place, archive)
    assert (found["failed"], found["problem"]["code"]) == (True, "archive_corrupted")
    assert found["msg"] == "The archive of environment main that 10.0.0.1 sent is not the one that was packed."
    assert files(place, "two") == before
    assert list((place / "two" / "archives").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"address": "away"}, "Connection refused"), ({"user": "nobody"}, "runuser: user nobody does not exist")],
)
def test_a_node_that_cannot_be_reached(place, options, reason):
    found = unpacked(place, packed(place), **options)
    assert (found["failed"], found["problem"]["code"]) == (True, "archive_not_fetched")
    assert found["msg"].endswith(f": {reason}.")


def test_another_interpreter(place):
    archive, before = packed(place), files(place, "two")
    (place / "two" / "envs" / "main" / "bin" / "python").unlink()
    (place / "two" / "envs" / "main" / "bin" / "python").symlink_to("/usr/bin/python3.12")
    found = unpacked(place, archive)
    assert (found["failed"], found["problem"]["code"]) == (True, "archive_other_interpreter")
    assert set(files(place, "two")) == set(before)
    assert [path.name for path in (place / "two" / "envs").iterdir()] == ["main"]


def test_no_environment_to_pack(place):
    (place / "one" / "envs" / "main" / "bin" / "python").unlink()
    assert run(place, "one", "packed")["problem"]["code"] == "archive_no_environment"


def test_no_room(place):
    archive = packed(place)
    found = unpacked(place, {**archive, "bytes": 1 << 60})
    assert found["problem"]["code"] == "archive_no_space"
