# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock: what was planned stays, whatever the tables say later."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import decide as decide_module
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan_text import plan_table
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import OPTIONAL
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES, resolve
from ansible_collections.allreduce.gpu.tests.support.newer_tables import NEWER, difference, with_newer_pytorch
from hypothesis import given, settings
from hypothesis import strategies as st

QUESTION = {"os": "debian 12", "request": {"driver": "535"}}
OTHER = {"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"driver": "580"}}
newer_tables = partial(with_newer_pytorch, TABLES)


def decide(question, tables=TABLES, **options):
    return decide_module.decide(question, tables=tables, **options)


def write(path, *questions):
    path.write_text(
        lock.text(lock.renewed(lock.read(str(path)), [resolve(one)["stack"] for one in questions])), encoding="utf-8"
    )
    return str(path)


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "stack.lock.yml", QUESTION)


def test_what_is_planned_no_more_is_no_difference(tmp_path):
    """Locks of 0.1.0 have keys of the repository that nothing read."""
    path = tmp_path / "stack.lock.yml"
    question = {"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"driver": "580", "driver_source": "nvidia"}}
    old = resolve(question)["stack"]
    assert not {keys[-1] for keys in lock.DROPPED} & set(old["repository"])
    old["repository"].update(key_sha1=True, pin_priority=600, module_hotfixes=False)
    path.write_text(lock.text(lock.renewed(None, [old])), encoding="utf-8")
    before = path.read_text(encoding="utf-8")

    locked = decide(question, lock=str(path))["stack"]
    assert (locked["update"], locked["repository"]) == ([], old["repository"])
    assert lock.text(lock.renewed(lock.read(str(path)), [locked])) == before
    old["repository"]["key_fingerprint"] = "another"
    [entry] = lock.renewed(None, [old])
    [told] = lock.differences(entry, resolve(question)["stack"])
    assert told.startswith("repository.key_fingerprint: another -> ")


def test_a_newer_release_in_the_tables_changes_nothing(path):
    assert resolve(QUESTION, newer_tables())["stack"]["environments"][0]["frameworks"] == {"pytorch": NEWER}
    locked = decide(QUESTION, tables=newer_tables(), lock=path)["stack"]
    before = resolve(QUESTION)["stack"]
    assert {name: locked[name] for name in before} == before


def test_it_says_what_renewing_would_change(path):
    locked = decide(QUESTION, tables=newer_tables(), lock=path)["stack"]
    assert locked["update"] == [difference(TABLES)]


def test_renewing_takes_the_newer_release_and_shows_the_difference(path):
    renewed = decide(QUESTION, tables=newer_tables(), lock=path, renew=True)["stack"]
    assert renewed["environments"][0]["frameworks"] == {"pytorch": NEWER}
    assert renewed["update"] == [difference(TABLES)]


def test_a_locked_stack_the_tables_refuse_by_now_stays(path):
    tables = newer_tables()
    for row in tables.subjects["torch"]["rows"]:
        row["python"] = ["3.6"]
    assert resolve({**QUESTION, "python": "3.11"}, tables)["stack"] is None
    for row in tables.subjects["drivers"]["rows"]:
        row["branch"] += 1000
    tables.subjects["archives"]["rows"].clear()
    with pytest.raises(InputError) as error:
        decide(QUESTION, tables=tables, lock=path)
    (problem,) = error.value.problems
    assert (problem.code, problem.subject, problem.detail["value"]) == ("unknown_version", "driver", "535")


def test_the_same_plan_gives_the_same_file(path):
    with open(path, encoding="utf-8") as stream:
        before = stream.read()
    assert (
        lock.text(lock.renewed(lock.read(path), [decide(QUESTION, tables=newer_tables(), lock=path)["stack"]]))
        == before
    )


def test_the_order_of_hosts_does_not_matter(tmp_path):
    one = write(tmp_path / "one.yml", QUESTION, OTHER, QUESTION)
    two = write(tmp_path / "two.yml", OTHER, QUESTION)
    assert lock.read(one) == lock.read(two)
    assert len(lock.read(one)) == 2


def test_the_order_of_keys_does_not_matter(path):
    stack = resolve(QUESTION)["stack"]
    shuffled = {**stack, "inputs": dict(reversed(stack["inputs"].items()))}
    assert len(lock.renewed(lock.read(path), [stack, shuffled])) == 1


def test_hosts_that_were_not_planned_stay_in_it(path, tmp_path):
    write(tmp_path / "stack.lock.yml", OTHER)
    assert len(lock.read(path)) == 2


def test_a_lock_of_a_collection_that_did_not_plan_interpreters_stays_quiet(tmp_path):
    """Its environments get the interpreter that would be planned for their Python, and the file stays as it is."""
    path = tmp_path / "stack.lock.yml"
    old = resolve(QUESTION)["stack"]
    planned = old["environments"][0].pop("interpreter")
    path.write_text(lock.text(lock.renewed(None, [old])), encoding="utf-8")
    before = path.read_text(encoding="utf-8")

    locked = decide(QUESTION, lock=str(path))["stack"]
    assert locked["update"] == []
    assert locked["environments"][0]["interpreter"] == planned
    assert planned == {
        "source": "distribution",
        "path": "/usr/bin/python3.11",
        "packages": ["python3.11", "python3.11-venv"],
    }
    assert lock.text(lock.renewed(lock.read(str(path)), [locked])) == before
    [line] = decide(QUESTION | {"request": {"driver": "550"}}, lock=str(path), renew=True)["stack"]["update"][:1]
    assert line.startswith("driver")


def test_an_old_lock_with_a_python_that_the_distribution_lacks_gets_a_standalone_build(tmp_path):
    path = tmp_path / "stack.lock.yml"
    question = {**QUESTION, "python": "3.10"}
    old = resolve(question)["stack"]
    del old["environments"][0]["interpreter"]
    path.write_text(lock.text(lock.renewed(None, [old])), encoding="utf-8")
    found = decide(question, lock=str(path))["stack"]["environments"][0]["interpreter"]
    assert found == {"source": "standalone", "path": None, "packages": []}


def test_the_lock_carries_the_choice_of_the_interpreter(path):
    question = {**QUESTION, "interpreter": "standalone"}
    with pytest.raises(lock.LockError) as caught:
        decide(question, lock=path)
    assert "request.python_env_python was none and is standalone" in caught.value.problems[0].detail["changes"]
    renewed = decide(question, lock=path, renew=True)["stack"]
    assert "environments.main.interpreter.source: distribution -> standalone" in renewed["update"]
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(lock.text(lock.renewed(None, [renewed])))
    locked = decide(question, lock=path)["stack"]
    assert (locked["update"], locked["environments"][0]["interpreter"]["source"]) == ([], "standalone")


@pytest.mark.parametrize("rule", lock.ADDED, ids=".".join)
def test_each_part_that_is_new_exists(rule):
    assert any(path[:1] == rule[:1] and path[2:3] == rule[2:] for path in paths())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gpus": ["A40", "A40"]}, "gpus was none and is 2 x A40"),
        ({"request": {"driver": "535", "pytorch": "2.12"}}, "request.pytorch was none and is 2.12"),
        ({"os": "debian 13", "request": {"driver": "550"}}, "os was debian 12 and is debian 13"),
        ({"arch": "aarch64"}, "arch was x86_64 and is aarch64"),
    ],
)
def test_a_host_it_does_not_fit_is_refused_with_what_changed(path, change, says):
    with pytest.raises(lock.LockError) as caught:
        decide({**QUESTION, **change}, lock=path)
    (problem,) = caught.value.problems
    assert (problem.code, problem.subject) == ("lock_outdated", path)
    assert says in problem.detail["changes"]
    assert "-e stack_lock_renew=true" in describe(problem)


def test_a_request_that_cannot_work_is_a_conflict_before_it_is_a_matter_of_the_lock(path):
    answer = decide({**QUESTION, "gpus": ["A40"], "request": {"driver": "535", "pytorch": "2.15.0"}}, lock=path)
    assert answer["conflicts"][0]["between"] == ["driver", "pytorch"]


def test_suites_are_no_part_of_what_a_host_is(path):
    """Enabling a security suite must not break a lock: the archive's branch is asked for by pattern."""
    assert decide({**QUESTION, "suites": ["bookworm"]}, lock=path)["stack"]["driver"]["version"] == "535.309.01"


def test_no_lock(tmp_path):
    assert lock.read(str(tmp_path / "absent.yml")) is None
    assert lock.read(None) is None
    assert "update" not in decide(QUESTION, lock=str(tmp_path / "absent.yml"))["stack"]


@pytest.mark.parametrize("content", ["", "all: {}", "[1, 2", "all: {vars: {__stack_lock: 1}}"])
def test_what_is_no_lock(tmp_path, content):
    path = tmp_path / "stack.lock.yml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(lock.LockError, match="lock_unreadable"):
        lock.read(str(path))


@pytest.mark.parametrize(
    "content", [b"\0\xff", b"[" * 1500, b"<<<<<<< HEAD\nall: {}\n"], ids=["binary", "deep", "merge"]
)
def test_what_is_no_text_is_no_lock(tmp_path, content):
    path = tmp_path / "stack.lock.yml"
    path.write_bytes(content)
    with pytest.raises(lock.LockError, match="lock_unreadable"):
        lock.read(str(path))


def places(value, path=()):
    """The ways to all parts of a document, of lists to the first."""
    below = value.items() if isinstance(value, dict) else [(0, value[0])] if isinstance(value, list) and value else ()
    for key, one in below:
        yield (*path, key)
        yield from places(one, (*path, key))


FULL = {"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"driver": "535", "cuda": "11.8", "cudnn": "8.9"}}
WHOLE = yaml.safe_load(lock.text(lock.renewed(None, [resolve(FULL)["stack"]])))
ENTRIES = ("all", "vars", lock.VARIABLE, "entries")


@settings(max_examples=40, deadline=None)
@given(
    place=st.sampled_from([one for one in places(WHOLE) if one[:4] == ENTRIES]),
    value=st.sampled_from([None, True, 0.5, "x", "9" * 5000, [], [None], [[]], {}, {"a": 1}, "absent"]),
)
def test_an_edited_lock_is_planned_with_or_a_sentence_says_where_it_is_damaged(tmp_path_factory, place, value):
    edited = copy.deepcopy(WHOLE)
    part = edited
    for key in place[:-1]:
        part = part[key]
    if value == "absent":
        del part[place[-1]]
    else:
        part[place[-1]] = value
    path = tmp_path_factory.mktemp("lock") / "stack.lock.yml"
    path.write_text(yaml.safe_dump(edited), encoding="utf-8")
    host = {"gpu_stack_host": {"os": FULL["os"], "gpus": FULL["gpus"]}, "gpu_stack_request": FULL["request"]}
    try:
        plan_table(plan({"gpu-1": host}, "2.19.1", lock=str(path)))
    except lock.LockError as error:
        (problem,) = error.problems
        assert describe(problem)


def test_a_damaged_lock_is_told_by_place_and_value(path):
    edited = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    edited["all"]["vars"][lock.VARIABLE]["entries"][0]["stack"]["environments"][0]["frameworks"] = "torch"
    Path(path).write_text(yaml.safe_dump(edited), encoding="utf-8")
    with pytest.raises(lock.LockError) as caught:
        lock.read(path)
    assert describe(caught.value.problems[0]) == (
        f"entries[0].stack.environments[0].frameworks in {path} is 'torch', but must be a mapping; "
        "restore the file from version control, or delete it to plan again."
    )


def test_a_lock_of_another_format(tmp_path):
    path = tmp_path / "stack.lock.yml"
    path.write_text("all: {vars: {__stack_lock: {format: 1, entries: []}}}", encoding="utf-8")
    with pytest.raises(lock.LockError) as caught:
        lock.read(str(path))
    assert "has lock format 1, but this collection reads format 2" in describe(caught.value.problems[0])


def test_it_is_a_valid_inventory_without_hosts(path):
    with open(path, encoding="utf-8") as stream:
        content = yaml.safe_load(stream)
    assert list(content) == ["all"] and list(content["all"]) == ["vars"]
    assert all(name.startswith("__") for name in content["all"]["vars"])


def test_packages_are_told_when_nothing_else_differs():
    stack = resolve(QUESTION)["stack"]
    other = copy.deepcopy(stack)
    other["driver"]["packages"][0]["version"] = "536.*"
    assert lock.differences({"stack": stack}, other) == ["driver.packages.firmware-nvidia-gsp.version: 535.* -> 536.*"]


def test_a_part_that_is_added_is_told_by_what_it_has():
    """Not as the whole part, which was none and is none."""
    stack, other = resolve({"os": "ubuntu 22.04"})["stack"], resolve(OTHER | {"gpus": []})["stack"]
    assert stack["driver"] is None
    found = lock.differences({"stack": stack}, other)
    assert "driver.branch: none -> 580" in found
    assert [line for line in found if line.endswith("none -> none")] == []
    assert "driver.branch: 580 -> none" in lock.differences({"stack": other}, stack)


EVERYTHING = {one.name: "latest" for one in PACKAGED if one.name in OPTIONAL}
QUESTIONS = (
    {"os": "ubuntu 22.04", "gpus": ["A100"] * 8, "nvswitches": 6,
     "request": {"pytorch": "auto", "cudnn": "auto", "nccl": "auto", "cuda": "auto", "horovod": "latest"}},
    {"os": "ubuntu 22.04", "gpus": ["A40"], "request": {**EVERYTHING, "pytorch": "none"}},
    {"os": "rocky 9", "gpus": ["H100"] * 8, "nvswitches": 4, "request": {"driver_source": "nvidia"}},
    {"os": "ubuntu 24.04", "gpus": ["A100"], "request": {"driver_source": "distribution"}},
    {"os": "debian 12", "gpus": ["A40"], "request": {"driver_source": "runfile", "container_toolkit": "1.17"}},
    {"os": "ubuntu 24.04", "arch": "aarch64", "gpus": ["GB200"] * 4},
)  # fmt: skip
STACKS = [resolve(question)["stack"] for question in QUESTIONS]


def paths():
    return {path for stack in STACKS for path in lock._flat(stack)}


@pytest.mark.parametrize("rule", lock.FOLLOWS, ids=".".join)
def test_each_part_that_follows_exists(rule):
    """A key that was renamed would be told beside the version that it follows from."""
    assert any(
        len(path) >= len(rule) and all(key in ("*", part) for key, part in zip(rule, path, strict=False))
        for path in paths()
    )


@pytest.mark.parametrize(
    ("path", "result"),
    [
        (("driver", "packages", "nvidia-driver", "version"), True),
        (("driver", "packages"), True),
        (("driver", "version"), False),
        (("driver", "dkms_module"), True),
        (("repository", "key_fingerprint"), True),
        (("environments", "main", "requirements"), True),
        (("environments", "main", "index", "url"), True),
        (("environments", "main", "index", "name"), False),
        (("environments", "main", "frameworks", "pytorch"), False),
        # Names of environments are the user's: they say nothing about what follows.
        (("environments", "packages", "python"), False),
        (("environments", "held", "frameworks", "pytorch"), False),
        (("gpus", "url", "count"), False),
    ],
)
def test_what_follows_is_decided_by_keys(path, result):
    assert lock.follows(path) is result


def test_versions_never_follow():
    told = {path for path in paths() if not lock.follows(path)}
    assert {("driver", "version"), ("cuda", "version"), ("cudnn", "version"), ("nccl", "version"), ("python",)} <= told
    assert {("fabric_manager", "version"), ("environments", "main", "frameworks", "pytorch")} <= told
