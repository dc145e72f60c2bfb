# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four cases of the module as Ansible runs it: change, change in check mode, idempotent, idempotent in check mode."""

import getpass
import grp
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import seen_files
from ansible_collections.allreduce.gpu.plugins.modules import config_files
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.account_helper import account

COLLECTIONS = str(Path(config_files.__file__).resolve().parents[2] / ".collections")


# The module, whose notes are below the directory of the first argument.
PROGRAM = """
import sys
from ansible_collections.allreduce.gpu.plugins.modules import config_files
tree = config_files.FileTree(sys.argv.pop(1))
config_files.FileTree = lambda: tree
config_files.main()
"""


def run(check, *files, notes=None, **options):
    notes = notes or Path(files[0]["path"]).parent / "notes"
    options = {"_ansible_check_mode": check, "_ansible_diff": True, **options}
    arguments = {"ANSIBLE_MODULE_ARGS": {"files": list(files), **options}}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(notes), json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


@pytest.fixture
def wanted(tmp_path):
    mine = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
    return {"path": str(tmp_path / "conf"), "content": "key = value\n", "mode": "0640", **mine}


def test_change(wanted):
    result = run(False, wanted)
    assert result["changed"] and result["changed_paths"] == [wanted["path"]]
    assert Path(wanted["path"]).read_text() == "key = value\n"


def test_change_in_check_mode(wanted):
    result = run(True, wanted)
    assert result["changed"] and result["diff"][0]["after"].endswith("key = value\n")
    assert not Path(wanted["path"]).exists()


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(wanted, check):
    run(False, wanted)
    result = run(check, wanted)
    assert (result["changed"], result["changed_paths"], result["diff"]) == (False, [], [])


def test_a_file_that_its_checker_refuses_is_not_put_in_place(wanted):
    result = run(False, dict(wanted, validate=["sh", "-c", "echo bad >&2; exit 1", "%s"]))
    assert result["failed"] and "would be refused by sh: bad" in result["msg"]
    assert not Path(wanted["path"]).exists()


def test_a_directory_is_never_removed(tmp_path, wanted):
    result = run(False, dict(wanted, path=str(tmp_path), state="absent"))
    assert result["failed"] and "is a directory" in result["msg"] and tmp_path.is_dir()


def test_settings_are_changed_in_place(wanted):
    Path(wanted["path"]).write_text("[main]\nbest=True\n")
    settings = {key: value for key, value in wanted.items() if key != "content"}
    settings["settings"] = {"proxy": "http://p:1"}
    result = run(False, settings)
    assert result["changed"]
    assert Path(wanted["path"]).read_text() == "[main]\nproxy=http://p:1\nbest=True\n"
    assert not run(False, settings)["changed"]


@pytest.mark.parametrize("given", [{}, {"content": "", "settings": {}}])
def test_a_file_needs_content_or_settings(wanted, given):
    del wanted["content"]
    assert run(False, {**wanted, **given})["failed"]


def test_secrets_are_written_and_never_shown(wanted):
    secret = "Sesame%4042"
    wanted["content"] = f"proxy = http://me:{secret}@proxy:1\n"
    result = run(False, wanted, secrets=[secret])
    assert Path(wanted["path"]).read_text() == wanted["content"]
    assert "http://me:********@proxy:1" in result["diff"][0]["after"]
    assert secret not in json.dumps(result)


# The module, which writes the rights that each file gets to standard error.
TELLING = """
import sys
sys.addaudithook(lambda event, given: event == "os.chmod" and sys.stderr.write("%s %04o\\n" % (given[0], given[1])))
"""


def test_a_new_secret_is_at_no_time_a_file_that_others_can_read(wanted):
    arguments = {"ANSIBLE_MODULE_ARGS": {"files": [wanted], "secrets": ["value"]}}
    command = [sys.executable, "-c", TELLING + PROGRAM, "/", json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": COLLECTIONS}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    given = [line.split()[1] for line in done.stderr.splitlines() if wanted["path"] in line]
    assert set(given) == {"0640"} and Path(wanted["path"]).read_text() == wanted["content"]


@pytest.fixture
def theirs():
    with account() as user:
        yield {
            "path": str(user.home / "keys"), "content": "ours\n", "mode": "0600",
            "owner": user.name, "group": user.group, "follow": False, "as_owner": True,
        }  # fmt: skip


def test_what_is_kept_as_its_owner(theirs):
    assert run(True, theirs)["changed"] and not Path(theirs["path"]).exists()
    assert run(False, theirs)["changed"]
    assert not run(False, theirs)["changed"]
    path = Path(theirs["path"])
    assert (path.read_text(), path.owner(), path.stat().st_mode & 0o777) == ("ours\n", theirs["owner"], 0o600)
    assert [one.name for one in path.parent.iterdir()] == ["keys"]
    assert run(False, {**theirs, "state": "absent"})["changed"] and not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can do what others cannot")
@pytest.mark.parametrize("link", ["keys", "directory"])
@pytest.mark.parametrize("follow", [False, True])
def test_a_link_of_the_owner_leads_nowhere(theirs, tmp_path, link, follow):
    """Not even where it was put there after we looked, which follow: true stands for."""
    secret = tmp_path / "keys"
    secret.write_text("sesame")
    before = secret.stat()
    home = Path(theirs["path"]).parent
    if link == "keys":
        (home / "keys").symlink_to(secret)
    else:
        (home / "directory").symlink_to(tmp_path)
        theirs["path"] = str(home / "directory" / "keys")
    result = run(False, {**theirs, "follow": follow})
    assert result["failed"] and "sesame" not in json.dumps(result)
    after = secret.stat()
    assert (after.st_ino, after.st_mode, after.st_uid, after.st_mtime) == (
        before.st_ino,
        before.st_mode,
        before.st_uid,
        before.st_mtime,
    )
    assert secret.read_text() == "sesame"


def test_an_owner_who_is_still_to_be_made_has_nothing(theirs):
    result = run(True, {**theirs, "owner": "allreduce-nobody"})
    assert result["changed"] and result["diff"][0]["before"] == "# absent\n"
    assert run(False, {**theirs, "owner": "allreduce-nobody"})["failed"]


def following(wanted, tmp_path, **more):
    """The entry, whose command writes a line each time that it runs."""
    return {**wanted, "then": ["sh", "-c", f"echo ran >> {tmp_path}/log"], **more}


def times(tmp_path):
    return len((tmp_path / "log").read_text().split()) if (tmp_path / "log").exists() else 0


def test_what_follows_runs_once_for_all_and_not_again(wanted, tmp_path):
    both = [following(wanted, tmp_path), following({**wanted, "path": str(tmp_path / "other")}, tmp_path)]
    assert run(True, *both)["changed"] and times(tmp_path) == 0
    assert run(False, *both)["changed"] and times(tmp_path) == 1
    assert not run(False, *both)["changed"] and times(tmp_path) == 1
    assert run(False, dict(both[0], state="absent"), both[1])["changed"] and times(tmp_path) == 2


def test_what_follows_runs_where_every_program_may_be(wanted, tmp_path):
    run(False, dict(wanted, then=["sh", "-c", f"pwd > {tmp_path}/place"]))
    assert (tmp_path / "place").read_text().strip() == "/"


@pytest.mark.parametrize(("there", "runs"), [("conf*", 1), ("nothing-*", 0)])
def test_what_follows_runs_only_where_its_path_is(wanted, tmp_path, there, runs):
    assert run(False, following(wanted, tmp_path, then_if=str(tmp_path / there)))["changed"]
    assert times(tmp_path) == runs


def test_what_follows_is_told_when_it_fails(wanted):
    result = run(False, dict(wanted, then=["sh", "-c", "echo No space left >&2; exit 1"]))
    assert result["failed"] and "ended with 1: No space left. The next run tries it again." in result["msg"]
    assert Path(wanted["path"]).read_text() == wanted["content"]


def noted(check, entry, tmp_path):
    """The answer of the module that notes its entry, below a directory of the test."""
    return run(check, entry, notes=tmp_path / "notes", noted={entry["path"]: seen_files.expected(entry)})


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("state", ["file", "absent"])
def test_what_follows_runs_in_the_next_run_where_one_was_interrupted(wanted, tmp_path, state, check):
    """The file is as declared already, and what was noted is older. It is told as changed: it comes into use only now."""
    entry = following(wanted, tmp_path)
    assert noted(False, entry, tmp_path)["changed"] and times(tmp_path) == 1
    entry = dict(entry, content="key = other\n", state=state)
    assert noted(False, dict(entry, then=["false"]), tmp_path)["failed"] and times(tmp_path) == 1
    result = noted(check, entry, tmp_path)
    assert (result["changed"], result["changed_paths"], times(tmp_path)) == (True, [wanted["path"]], 1 if check else 2)
    if not check:
        assert not noted(False, entry, tmp_path)["changed"] and times(tmp_path) == 2


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_what_follows_runs_in_the_next_run_of_files_with_secrets_too(wanted, tmp_path, check, refused):
    """The command failed, or a later file was refused before it could run."""
    other = {**wanted, "path": str(tmp_path / "other"), "validate": ["sh", "-c", "exit 1"] if refused else []}
    entry = following(wanted, tmp_path)
    first = entry if refused else dict(entry, then=["false"])
    assert run(False, first, other, secrets=["value"])["failed"] and times(tmp_path) == 0
    result = run(check, entry, dict(other, validate=[]), secrets=["value"])
    assert result["changed"] and times(tmp_path) == (0 if check else 1)
    if not check:
        assert not run(False, entry, dict(other, validate=[]), secrets=["value"])["changed"] and times(tmp_path) == 1
        assert os.listdir(tmp_path / "notes") == []


def test_nothing_follows_what_was_never_there(wanted, tmp_path):
    assert not noted(False, following(wanted, tmp_path, state="absent"), tmp_path)["changed"]
    assert times(tmp_path) == 0


@pytest.mark.parametrize("check", [False, True])
def test_a_block_of_a_file_that_somebody_else_keeps(wanted, check):
    path = Path(wanted["path"])
    path.write_text("127.0.0.1 localhost\n127.0.1.1 node\n")
    del wanted["content"]
    block = {**wanted, "block": "10.0.0.1 node\n", "block_name": "ours", "block_first": True, "in_place": True}
    asked = {**block, "commented_out": r"127\.0\.1\.1 .*"}
    after = "# BEGIN ours\n10.0.0.1 node\n# END ours\n127.0.0.1 localhost\n# 127.0.1.1 node\n"
    assert run(check, asked)["diff"][0]["after"].endswith(after)
    assert path.read_text() == ("127.0.0.1 localhost\n127.0.1.1 node\n" if check else after)
    if not check:
        assert not run(False, asked)["changed"]


OTHERS, OURS = "127.0.0.1 localhost\n", "# BEGIN ours\n10.0.0.1 node\n# END ours\n"


@pytest.mark.parametrize(("text", "after"), [(None, None), (OTHERS, OTHERS), (OTHERS + OURS, OTHERS)])
def test_a_file_whose_block_goes_is_left_as_its_keeper_has_it(wanted, text, after):
    """None is made for it, and its mode is not ours."""
    path = Path(wanted["path"])
    if text is not None:
        path.write_text(text)
        path.chmod(0o604)
    del wanted["content"]
    gone = {**wanted, "block": "", "block_name": "ours"}
    assert run(False, gone)["changed"] is (text != after)
    assert not run(False, gone)["changed"]
    assert (path.read_text() if path.exists() else None) == after
    assert after is None or path.stat().st_mode & 0o777 == 0o604


def test_bytes_of_somebody_else_that_are_no_text_stay(wanted):
    path = Path(wanted["path"])
    path.write_bytes(b"# caf\xe9\n")
    del wanted["content"]
    result = run(False, {**wanted, "block": "a", "block_name": "ours"})
    assert result["changed"], result
    assert path.read_bytes() == b"# caf\xe9\n# BEGIN ours\na\n# END ours\n"
    assert not run(False, {**wanted, "block": "a", "block_name": "ours"})["changed"]
