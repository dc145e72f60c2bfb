# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, between two nodes that are two directories; an ssh of a few lines goes from one to the other."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import environment_archive
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COLLECTIONS = str(Path(environment_archive.__file__).resolve().parents[2] / ".collections")
# Runs what ssh is given, where the other node has its wheels; breaks: after so many bytes the connection is lost, once. sends: a hostile
# node sends this instead.
SSH = """#!/bin/sh
while [ "$#" -gt 1 ]; do [ "$1" = away ] && {{ printf 'Connection \\033[2Jrefused\\n' >&2; exit 255; }}; shift; done
echo "$1" >> {place}/asked
if [ -e {place}/sends ]; then exec cat {place}/sends; fi
command=$(echo "$1" | sed 's,/two/,/one/,')
if [ -e {place}/breaks ]; then rm {place}/breaks; sh -c "$command" | head -c 30000; exit 255; fi
exec sh -c "$command"
"""
RUNUSER = """#!/bin/sh
[ "$2" = trainer ] || {{ echo "runuser: user $2 does not exist" >&2; exit 1; }}
shift 3; exec "$@"
"""
CONTENT = {
    "alpha-1.0-py3-none-any.whl": b"alpha" * 5000,
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.manylinux2014_x86_64.whl": bytes(range(256)) * 100,
    "z_e.ta-1-2build-py2.py3-none-any.whl": b"z",
}
WHEELS = [
    {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    for name, content in CONTENT.items()
]


@pytest.fixture
def place(tmp_path):
    """Two nodes, an index that has the wheels, and a file beside each directory that nothing may touch."""
    programs, index = tmp_path / "bin", tmp_path / "index"
    for directory in (programs, index, tmp_path / "one", tmp_path / "two"):
        directory.mkdir()
    for name, text in (("ssh", SSH), ("runuser", RUNUSER)):
        (programs / name).write_text(text.format(place=tmp_path))
        (programs / name).chmod(0o755)
    for name, content in CONTENT.items():
        (index / name).write_bytes(content)
    (tmp_path / "two" / "outside").write_text("as it was")
    return tmp_path


def run(place, node, state, check=False, **options):
    said = {"name": "main", "state": state, "directory": f"{place}/{node}/wheels", **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.environment_archive",
         json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **said}})],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS, "PATH": f"{place}/bin:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def downloaded(place, **change):
    wheels = [{**one, "url": f"file://{place}/index/{one['file']}", **change} for one in WHEELS]
    return run(place, "one", "downloaded", wheels=[{k: v for k, v in one.items() if k != "bytes"} for one in wheels])


def copied(place, wheels=WHEELS, **options):
    return run(place, "two", "copied", wheels=wheels, **{"address": "10.0.0.1", **options})


def there(place, node):
    base = place / node / "wheels" / "main"
    return {path.name: path.read_bytes() for path in base.iterdir()} if base.exists() else None


def test_wheels_go_from_the_index_to_a_node_and_from_there_to_another(place):
    found = downloaded(place)
    assert (found["changed"], found["wheels"]) == (True, WHEELS)
    assert copied(place)["changed"] is True
    assert there(place, "two") == there(place, "one") == CONTENT
    base = place / "two" / "wheels" / "main"
    assert base.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in base.iterdir()} == {0o644}
    assert len((place / "asked").read_text().splitlines()) == 1
    # What is there is not asked for again.
    assert copied(place)["changed"] is True
    assert len((place / "asked").read_text().splitlines()) == 1


def test_only_what_is_missing_is_copied_and_nothing_else_stays(place):
    downloaded(place)
    base = place / "two" / "wheels" / "main"
    base.mkdir(parents=True)
    (base / WHEELS[0]["file"]).write_bytes(CONTENT[WHEELS[0]["file"]])
    (base / WHEELS[1]["file"]).write_bytes(b"of another lock")
    (base / "evil-1.0-py3-none-any.whl").write_bytes(b"which uv would find")
    (base / WHEELS[2]["file"]).symlink_to(place / "two" / "outside")
    (base / f"{WHEELS[2]['file']}.part").mkdir()
    assert copied(place)["changed"] is True
    assert there(place, "two") == CONTENT
    assert WHEELS[0]["file"] not in (place / "asked").read_text()
    assert (place / "two" / "outside").read_text() == "as it was"


def test_a_link_in_the_place_of_the_directory_is_replaced(place):
    downloaded(place)
    (place / "two" / "wheels").mkdir()
    (place / "two" / "elsewhere").mkdir()
    (place / "two" / "wheels" / "main").symlink_to(place / "two" / "elsewhere")
    assert copied(place)["changed"] is True
    assert not (place / "two" / "wheels" / "main").is_symlink() and not list((place / "two" / "elsewhere").iterdir())


@pytest.mark.parametrize(("node", "state"), [("one", "downloaded"), ("two", "copied")])
def test_check_mode_changes_nothing(place, node, state):
    found = run(place, node, state, check=True, address="10.0.0.1", wheels=WHEELS)
    assert found["changed"] is True
    assert there(place, node) is None and not (place / "asked").exists()


@pytest.mark.parametrize("check", [False, True])
def test_wheels_are_removed_once(place, check):
    downloaded(place)
    assert run(place, "one", "absent", check=check)["changed"] is True
    assert (there(place, "one") is not None) is check
    if not check:
        assert run(place, "one", "absent")["changed"] is False


def test_a_connection_that_breaks_goes_on_where_it_was(place):
    downloaded(place)
    (place / "breaks").touch()
    assert copied(place)["changed"] is True
    asked = [line.rpartition("tail -c ")[2] for line in (place / "asked").read_text().splitlines()]
    assert asked == ["+1", "+5001"]  # 30000 bytes: the first wheel has 25000
    assert there(place, "two") == CONTENT


@pytest.mark.parametrize("left", [b"of another wheel", b"x" * 25_000, b"x" * 99_000])
def test_what_an_interrupted_run_left_of_another_wheel_is_dropped(place, left):
    downloaded(place)
    base = place / "two" / "wheels" / "main"
    base.mkdir(parents=True)
    (base / f"{WHEELS[0]['file']}.part").write_bytes(left)
    assert copied(place)["changed"] is True
    assert there(place, "two") == CONTENT


def test_a_wheel_that_does_not_have_the_hash_of_the_lock_is_refused(place):
    downloaded(place)
    (place / "one" / "wheels" / "main" / WHEELS[1]["file"]).write_bytes(b"evil!" * 5120)
    found = copied(place)
    assert (found["failed"], found["problem"]["code"]) == (True, "wheels_changed")
    assert found["msg"] == f"{WHEELS[1]['file']} that 10.0.0.1 sent does not have the SHA-256 of the lock."
    assert there(place, "two") is None
    (place / "index" / WHEELS[0]["file"]).write_bytes(b"evil")
    run(place, "one", "absent")
    found = downloaded(place)
    assert (found["problem"]["code"], found["problem"]["subject"]) == ("wheels_not_downloaded", WHEELS[0]["file"])
    assert WHEELS[0]["file"] not in there(place, "one")


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"address": "away"}, "Connection ?[2Jrefused"), ({"user": "nobody"}, "runuser: user nobody does not exist")],
)
def test_a_node_that_cannot_be_reached(place, options, reason):
    downloaded(place)
    found = copied(place, **options)
    assert (found["failed"], found["problem"]["code"]) == (True, "wheels_not_copied")
    assert found["msg"].endswith(f": {reason}.")
    assert there(place, "two") is None


def archive(*members):
    """A tar archive as a hostile node may send it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, kind, target in members:
            one = tarfile.TarInfo(name)
            one.type, one.linkname, one.mode = kind, target, 0o4755
            tar.addfile(one)
    return content.getvalue()


HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([
        archive(("../outside", tarfile.REGTYPE, "")), archive(("a", tarfile.SYMTYPE, "/"), ("a/etc/x", tarfile.REGTYPE, "")),
        archive(("x", tarfile.LNKTYPE, "../../outside")), archive(("d", tarfile.CHRTYPE, "")), b"\0" * 100_000, b"PK\3\4" * 10_000,
    ]),
    st.sampled_from(list(CONTENT.values())),
)  # fmt: skip


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HOSTILE, min_size=1, max_size=4).map(b"".join))
def test_whatever_a_node_sends_only_wheels_of_the_lock_arrive(place, content):
    (place / "sends").write_bytes(content)
    before = {
        path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name not in ("asked", "sends")
    }
    found = copied(place)
    if content.startswith(b"".join(CONTENT.values())):
        assert there(place, "two") == CONTENT
        run(place, "two", "absent")
    else:
        assert found["failed"] and there(place, "two") is None
    assert {
        path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name not in ("asked", "sends")
    } == before


@pytest.mark.parametrize(
    "wrong",
    [
        *({"file": name} for name in (
            "../x-1-py3-none-any.whl", "/etc/x-1-py3-none-any.whl", "x", "", ".", "..", "a-1-b-c-d/e.whl", "a-1-py3-none-any.whl\n", "a-1-py3-none-any.whl\0",
            "a-1-py3-none-any.pth", "-a-1-py3-none-any.whl", "a'-1-py3-none-any.whl", "a-1-py3-none-any.whl;id", "$(id)-1-py3-none-any.whl", "ä-1-a-b-c.whl",
            "a-1-py3-none-" + "x" * 250 + ".whl", WHEELS[1]["file"])),
        *({"sha256": digest} for digest in ("", "0", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n")),
        *({"bytes": size} for size in (0, -1, 1 << 60, 1 << 35)),
    ],
)  # fmt: skip
def test_what_is_not_a_wheel_to_carry_is_refused_before_anything_is_asked(place, wrong):
    found = copied(place, wheels=[{**WHEELS[0], **wrong}, *WHEELS[1:]])
    assert (found["failed"], found["problem"]["code"]) == (True, "wheels_invalid")
    assert not (place / "asked").exists() and there(place, "two") is None
    assert found["problem"]["subject"].isprintable()


@pytest.mark.parametrize("name", ["", ".", "..", "../outside", "a/b"])
@pytest.mark.parametrize("state", ["absent", "copied"])
def test_a_name_that_leads_out_of_the_directory_is_refused(place, name, state):
    directory = place / "two" / "wheels"
    (directory / "main").mkdir(parents=True)
    found = run(place, "two", state, name=name, wheels=WHEELS, address="10.0.0.1", directory=str(directory))
    assert (
        found["failed"] and found["msg"] == f"name is '{name}': write the name of an environment, without a directory."
    )
    assert (directory / "main").is_dir() and (place / "two" / "outside").exists() and not (place / "asked").exists()


def test_no_room(place):
    found = copied(place, wheels=[{**one, "bytes": 15 << 30} for one in WHEELS])
    assert (
        found["problem"]["code"] == "wheels_no_space"
        or os.statvfs(place).f_bavail * os.statvfs(place).f_frsize > 135 << 30
    )
