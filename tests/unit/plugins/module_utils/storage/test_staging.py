# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data sets on the disk of this machine: copied once, continued, replaced, removed, and what is refused."""

import fcntl
import hashlib
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage import staging
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.describe import describe
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.sources import Address, Directory, source_of

FILES = {"one.tar": b"1" * 5000, "train/two.tar": b"2" * 7000, "three.idx": b""}


def digest(content):
    return hashlib.sha256(content).hexdigest()


def write(place, files, **more):
    """A data set with its manifest; more: other checksums in the manifest."""
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    lines = [f"{more.get(name, digest(content))}  {name}\n" for name, content in sorted(files.items())]
    (place / "SHA256SUMS").write_text("".join(lines))


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "source").mkdir()
    write(tmp_path / "source", FILES)
    return tmp_path


def wanted(place, **options):
    return {
        "directory": str(place / "scratch"), "name": "set", "manifest": "SHA256SUMS", "source": str(place / "source"),
        "checksum": "", "needs_mount": False, "verify": False, "jobs": 2, **options,
    }  # fmt: skip


def stage(place, check=False, **options):
    return staging.stage(wanted(place, **options), check)


def there(place):
    """{name: content} of everything below the scratch."""
    top = place / "scratch"
    return {str(one.relative_to(top)): one.read_bytes() for one in sorted(top.rglob("*")) if one.is_file()}


def complete(place, files=None):
    found = {"set/" + name: content for name, content in (files or FILES).items()}
    return {**found, "set/SHA256SUMS": (place / "source" / "SHA256SUMS").read_bytes()}


def codes(answer):
    return [one["code"] for one in answer["problems"]]


@pytest.fixture
def fetched(monkeypatch):
    """The names that were copied."""
    names, fetch = [], Directory.fetch
    monkeypatch.setattr(Directory, "fetch", lambda self, name, path: names.append(name) or fetch(self, name, path))
    return names


def test_copied_once(place, fetched):
    before = os.umask(0o077)
    try:
        first = stage(place)
    finally:
        os.umask(before)
    assert (first["changed"], first["files"], first["copied"], first["bytes"]) == (True, 3, 3, 12000)
    assert there(place) == complete(place) and sorted(fetched) == sorted(FILES)
    assert (place / "scratch" / "set").stat().st_mode & 0o777 == 0o755
    assert (place / "scratch" / "set" / "one.tar").stat().st_mode & 0o777 == 0o644
    again = stage(place)
    assert (again["changed"], again["copied"], again["problems"]) == (False, 0, []) and len(fetched) == 3


def test_check_mode_touches_nothing(place):
    found = stage(place, check=True)
    assert (found["changed"], found["copied"], found["bytes"]) == (True, 3, 12000) and there(place) == {}
    stage(place)
    assert stage(place, check=True)["changed"] is False


def test_with_a_checksum_the_source_is_not_asked(place, monkeypatch):
    checksum = digest((place / "source" / "SHA256SUMS").read_bytes())
    stage(place, checksum=checksum)
    monkeypatch.setattr(Directory, "read", lambda self, name: pytest.fail("the source was asked"))
    assert stage(place, checksum=checksum)["changed"] is False


def test_an_interrupted_copy_is_not_seen_and_is_continued(place, fetched):
    partial = place / "scratch" / ".set.staging"
    (partial / "train").mkdir(parents=True)
    (partial / "train" / "two.tar").write_bytes(FILES["train/two.tar"])
    (partial / "one.tar").write_bytes(b"1" * 100)
    (partial / "stranger").write_bytes(b"of another version")
    found = stage(place)
    assert sorted(fetched) == ["one.tar", "three.idx"] and (found["copied"], found["bytes"]) == (2, 5000)
    assert there(place) == complete(place)


def test_a_source_that_fails_half_way_leaves_nothing_in_the_place(place, monkeypatch):
    fetch = Directory.fetch
    monkeypatch.setattr(
        Directory, "fetch", lambda self, name, path: "gone" if name == "train/two.tar" else fetch(self, name, path)
    )
    found = stage(place)
    assert [describe(one) for one in found["problems"]] == ["train/two.tar could not be copied: gone"]
    assert not (place / "scratch" / "set").exists()
    monkeypatch.undo()
    assert stage(place)["copied"] == 1 and there(place) == complete(place)


def test_what_is_not_what_the_manifest_says_never_gets_there(place):
    write(place / "source", FILES, **{"one.tar": "0" * 64})
    for _again in range(2):
        found = stage(place)
        assert codes(found) == ["stage_differs"] and "one.tar of the source does not" in describe(found["problems"][0])
    assert not (place / "scratch" / "set").exists() and ".set.staging/one.tar" not in there(place)


def test_a_new_version_copies_what_changed(place, fetched):
    stage(place)
    del fetched[:]
    newer = {"one.tar": FILES["one.tar"], "train/two.tar": b"another", "four.tar": b"4"}
    (place / "source" / "three.idx").unlink()
    write(place / "source", newer)
    found = stage(place)
    assert sorted(fetched) == ["four.tar", "train/two.tar"] and (found["copied"], found["bytes"]) == (2, 8)
    assert found["before"] != found["digest"] and there(place) == complete(place, newer)


def test_a_new_version_that_fails_leaves_the_old_one(place, monkeypatch):
    stage(place)
    before = there(place)
    write(place / "source", {**FILES, "four.tar": b"4"})
    monkeypatch.setattr(Directory, "fetch", lambda self, name, path: "gone")
    assert codes(stage(place)) == ["stage_not_fetched"]
    assert {name: content for name, content in there(place).items() if name.startswith("set/")} == before


def test_a_new_version_never_writes_to_files_of_the_old_one(place, monkeypatch):
    """What rotted is linked as if it had not changed, and is found when it is read."""
    stage(place)
    (place / "scratch" / "set" / "one.tar").write_bytes(b"x" * 5000)
    before = there(place)
    write(place / "source", {**FILES, "four.tar": b"4"})
    fetch = Directory.fetch
    monkeypatch.setattr(
        Directory, "fetch", lambda self, name, path: "gone" if name == "four.tar" else fetch(self, name, path)
    )
    assert codes(stage(place)) == ["stage_not_fetched"]
    assert {name: content for name, content in there(place).items() if name.startswith("set/")} == before
    monkeypatch.undo()
    stage(place)
    assert there(place) == complete(place, {**FILES, "four.tar": b"4"})


def test_a_file_that_is_gone_comes_back(place, fetched):
    stage(place)
    del fetched[:]
    (place / "scratch" / "set" / "one.tar").unlink()
    assert stage(place)["copied"] == 1 and fetched == ["one.tar"] and there(place) == complete(place)


def test_what_rotted_is_found_on_request_and_replaced(place, fetched):
    stage(place)
    del fetched[:]
    (place / "scratch" / "set" / "one.tar").write_bytes(b"x" * 5000)
    assert stage(place)["changed"] is False
    assert stage(place, verify=True)["copied"] == 1 and fetched == ["one.tar"] and there(place) == complete(place)


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_crash_while_the_new_version_takes_its_place(place, is_moved):
    """The old one is aside, and the new one is complete beside its place or in it already."""
    stage(place)
    scratch = place / "scratch"
    os.rename(str(scratch / "set"), str(scratch / ("set" if is_moved else ".set.staging")))
    sums = digest((place / "source" / "SHA256SUMS").read_bytes())
    for options in ({}, {"checksum": sums}):
        (scratch / ".set.replaced").mkdir(exist_ok=True)
        (scratch / ".set.replaced" / "old").write_bytes(b"")
        assert stage(place, check=True, **options)["changed"] and (scratch / ".set.replaced" / "old").exists()
        found = stage(place, **options)
        assert (found["changed"], found["copied"]) == (True, 0) and there(place) == complete(place)
        assert stage(place, **options)["changed"] is False
    staging.unstage(wanted(place))
    assert there(place) == {}


def test_refused_before_anything_is_touched(place):
    def refused(**options):
        found = stage(place, **options)
        assert not found["changed"] and there(place) == before
        return [describe(one) for one in found["problems"]]

    before = {}
    assert refused(needs_mount=True)[0].startswith("nothing is mounted at")
    assert "No such file" in refused(source="/nowhere")[0]
    assert "has the checksum" in refused(checksum="0" * 64)[0]
    (place / "source" / "one.tar").unlink()
    assert refused() == ["the source does not have one.tar, or does not report its size"]
    (place / "scratch" / "set").mkdir()
    (place / "scratch" / "set" / "mine").write_bytes(b"mine")
    before = there(place)
    assert refused()[0].endswith("so it was not staged: move it away or choose another stage_name")


def test_no_room(place, monkeypatch):
    class Full:
        f_bavail, f_frsize = 2, 4096

    monkeypatch.setattr(staging.os, "statvfs", lambda path: Full)
    found = stage(place)
    assert [describe(one) for one in found["problems"]] == [
        "%s has 8 KiB free, and 12 KiB are to be copied" % (place / "scratch")
    ]
    assert there(place) == {}


def test_two_runs_at_a_time(place):
    (place / "scratch" / ".set.staging").mkdir()
    other = os.open(str(place / "scratch" / ".set.staging"), os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert codes(stage(place)) == ["stage_busy"] and there(place) == {}
    os.close(other)
    assert stage(place)["problems"] == []


def test_removal(place):
    stage(place)
    (place / "scratch" / ".set.staging").mkdir()
    (place / "scratch" / "other").write_bytes(b"stays")
    assert staging.unstage(wanted(place), True)["changed"] is True and len(there(place)) == 5
    assert staging.unstage(wanted(place))["changed"] is True
    assert there(place) == {"other": b"stays"} and sorted(os.listdir(str(place / "scratch"))) == ["other"]
    assert staging.unstage(wanted(place)) == {"problems": [], "changed": False, "before": None}


def test_what_nobody_staged_is_not_removed(place):
    (place / "scratch" / "set").mkdir()
    assert codes(staging.unstage(wanted(place))) == ["stage_foreign"] and (place / "scratch" / "set").exists()


def test_a_link_of_somebody_is_not_followed(place):
    (place / "outside").mkdir()
    (place / "outside" / "mine").write_bytes(b"mine")
    os.symlink(str(place / "outside"), str(place / "scratch" / ".set.replaced"))
    stage(place)
    assert (place / "outside" / "mine").exists() and there(place) == complete(place)


def test_sources_are_told_apart():
    assert isinstance(source_of("/mnt/set"), Directory)
    assert isinstance(source_of("https://data.example.org/set/"), Address)
    assert source_of("https://data.example.org/set/").url == "https://data.example.org/set"
