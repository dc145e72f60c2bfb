# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import config_files

FILE = {"path": "/etc/x", "state": "file", "content": "a\n", "mode": "0644", "owner": "root", "group": "root"}
DIRECTORY = dict(FILE, state="directory", content=None, mode="0755")
ABSENT = dict(FILE, state="absent")


@pytest.mark.parametrize(
    ("wanted", "found", "steps"),
    [
        (FILE, config_files.ABSENT, ["write", "set_attributes"]),
        (FILE, FILE, []),
        (FILE, dict(FILE, content="b\n"), ["write"]),
        (FILE, dict(FILE, mode="0600"), ["set_attributes"]),
        (FILE, dict(FILE, owner="ann"), ["set_attributes"]),
        (DIRECTORY, config_files.ABSENT, ["make_directory", "set_attributes"]),
        (DIRECTORY, DIRECTORY, []),
        (ABSENT, config_files.ABSENT, []),
        (ABSENT, FILE, ["remove"]),
        (ABSENT, dict(config_files.ABSENT, state="link"), ["remove"]),
    ],
)
def test_plan(wanted, found, steps):
    assert config_files.plan(wanted, found) == steps


@pytest.mark.parametrize(("wanted", "found"), [(ABSENT, DIRECTORY), (FILE, DIRECTORY), (DIRECTORY, FILE)])
def test_what_cannot_be_reached_is_refused(wanted, found):
    with pytest.raises(ValueError, match="/etc/x"):
        config_files.plan(wanted, found)


def test_diff_shows_content_only_where_it_changes():
    shown = config_files.diff(FILE, dict(FILE, mode="0600"), ["set_attributes"])
    assert (shown["before"], shown["after"]) == ("# file 0600 root:root\n", "# file 0644 root:root\n")
    shown = config_files.diff(FILE, config_files.ABSENT, ["write", "set_attributes"])
    assert (shown["before"], shown["after"]) == ("# absent\n", "# file 0644 root:root\na\n")


def write(path, content):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(content)


def test_apply_reaches_the_plan_and_then_has_nothing_to_do(tmp_path):
    mine = config_files.read(str(tmp_path))
    wanted = dict(FILE, path=str(tmp_path / "new" / "x"), owner=mine["owner"], group=mine["group"], mode="0640")
    config_files.apply(wanted, config_files.plan(wanted, config_files.read(wanted["path"])), write)
    assert config_files.read(wanted["path"])["content"] == "a\n"
    assert config_files.plan(wanted, config_files.read(wanted["path"])) == []
    gone = dict(wanted, state="absent")
    config_files.apply(gone, config_files.plan(gone, config_files.read(wanted["path"])), write)
    assert config_files.read(wanted["path"])["state"] == "absent"


@pytest.mark.parametrize(("state", "mode"), [("file", "0644"), ("directory", "0755")])
def test_what_is_made_on_the_way_is_open_whatever_the_umask(tmp_path, root_umask, state, mode):
    """Hardened hosts have 077 or 027, and environments lie below a directory that is made on the way."""
    mine = config_files.read(str(tmp_path))
    wanted = dict(FILE, path=str(tmp_path / "opt" / "allreduce" / "lib"), state=state, mode=mode)
    wanted = dict(wanted, owner=mine["owner"], group=mine["group"])
    config_files.apply(wanted, config_files.plan(wanted, config_files.read(wanted["path"])), write)
    found = {
        name: config_files.read(str(tmp_path / name))["mode"] for name in ("opt", "opt/allreduce", "opt/allreduce/lib")
    }
    assert found == {"opt": "0755", "opt/allreduce": "0755", "opt/allreduce/lib": mode}


@pytest.mark.parametrize("target", ["directory", "nothing"])
def test_a_link_is_refused_where_it_must_not_be_followed(tmp_path, target):
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / target)
    wanted = dict(DIRECTORY, path=str(tmp_path / "link"), follow=False)
    with pytest.raises(ValueError, match="link is a symbolic link where a directory belongs"):
        config_files.plan(wanted, config_files.read(wanted["path"], follow=False))


def test_what_is_no_link_is_read_the_same_way(tmp_path):
    assert config_files.read(str(tmp_path), follow=False) == config_files.read(str(tmp_path))
    assert config_files.read(str(tmp_path / "none"), follow=False)["state"] == "absent"


@pytest.mark.parametrize("state", ["file", "directory"])
def test_a_pipe_is_refused_at_once(tmp_path, state):
    """Opened, it would wait for somebody to write to it."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path, 0o644)
    found = config_files.read(path)
    assert (found["state"], found["content"], found["mode"]) == ("special", None, "0644")
    with pytest.raises(ValueError, match=f"pipe is a pipe, device or socket where a {state} belongs: move it away"):
        config_files.plan(dict(DIRECTORY, path=path, state=state), found)
    assert config_files.plan({"path": path, "state": "absent"}, found) == ["remove"]


def test_a_device_is_not_read(tmp_path):
    assert config_files.read("/dev/zero")["state"] == "special"
    (tmp_path / "link").symlink_to("/dev/zero")
    assert config_files.read(str(tmp_path / "link"))["state"] == "special"


def test_a_file_without_an_end_is_refused(tmp_path):
    with open(tmp_path / "huge", "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ValueError, match="huge has more than 16777216 bytes"):
        config_files.read(str(tmp_path / "huge"))


def test_a_dangling_link_is_seen(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert config_files.read(str(tmp_path / "link"))["state"] == "link"


@pytest.mark.parametrize(
    ("text", "settings", "after"),
    [
        ("", {"proxy": "http://p"}, "[main]\nproxy=http://p\n"),
        ("", {"proxy": ""}, ""),
        ("[main]\nbest=True\n", {"proxy": "http://p"}, "[main]\nproxy=http://p\nbest=True\n"),
        ("[main]\nbest=True\nproxy = http://p\n", {"proxy": "http://p"}, "[main]\nbest=True\nproxy = http://p\n"),
        ("[main]\nbest=True\nproxy = http://p\n", {"proxy": "http://q"}, "[main]\nbest=True\nproxy=http://q\n"),
        ("[main]\nproxy=http://p\nproxy=http://q\n", {"proxy": "http://p"}, "[main]\nproxy=http://p\n"),
        ("[main]\nproxy=http://p\nbest=True\n", {"proxy": None}, "[main]\nbest=True\n"),
        ("[main]\n#proxy=http://p\n", {"proxy": ""}, "[main]\n#proxy=http://p\n"),
        ("[other]\nproxy=http://o\n", {"proxy": "http://p"}, "[other]\nproxy=http://o\n[main]\nproxy=http://p\n"),
        (
            "[main]\n[other]\nproxy=http://o\n",
            {"proxy": "http://p"},
            "[main]\nproxy=http://p\n[other]\nproxy=http://o\n",
        ),
    ],
)
def test_settings_of_an_ini_file(text, settings, after):
    assert config_files.with_settings(text, "main", settings) == after
    assert config_files.with_settings(after, "main", settings) == after
