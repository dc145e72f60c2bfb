# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller keeps decides, and is refused only where a person can correct it."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.kept import (
    CONDA,
    choose,
    new_locks,
    read_locks,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.pins import lock_problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all

DIGEST, OTHER = "0123456789abcdef", "f" * 16
LOCK = f"# request: {DIGEST}\ntorch==2.13.0 --hash=sha256:{'a' * 64}\n"


def judge(text, one):
    return lock_problem(text, one["requirements"])


def described(lock="", relock=False, requirements=("torch",)):
    return {"main": {"digest": DIGEST, "lock": lock, "relock": relock, "requirements": requirements}}


@pytest.fixture
def directory(tmp_path):
    for name, text in ((f"{DIGEST}.txt", LOCK), (f"{OTHER}.conda.txt", "@EXPLICIT\n"), ("README.txt", "not a lock")):
        (tmp_path / name).write_text(text)
    return str(tmp_path)


def test_files_are_named_after_requests(directory):
    assert read_locks(directory) == {DIGEST: LOCK}
    assert read_locks(directory, CONDA) == {OTHER: "@EXPLICIT\n"}
    assert read_locks("") == read_locks(f"{directory}/gone") == {}


def test_what_is_kept_decides(directory):
    assert choose({"gpu-1": described("another")}, directory, judge) == {DIGEST: {"host": "gpu-1", "lock": LOCK}}
    assert choose({"gpu-1": described("another")}, "", judge) == {DIGEST: {"host": "gpu-1", "lock": "another"}}


def test_what_is_kept_and_is_not_a_lock_is_refused(directory):
    hosts = {"gpu-1": described(requirements=["torch", "numpy"]), "gpu-2": described()}
    with pytest.raises(ProblemError) as refused:
        choose(hosts, directory, judge)
    said = describe_all(refused.value.problems)
    assert said.startswith(
        f"{directory}/{DIGEST}.txt on the controller is not a lock of this request (It has nothing for"
    )
    # Solved again, it is replaced.
    hosts = {"gpu-1": described(relock=True, requirements=["torch", "numpy"])}
    assert choose(hosts, directory, judge) == {DIGEST: {"host": "gpu-1", "lock": ""}}


@pytest.mark.parametrize(
    ("first", "names"), [(f"# request: {OTHER}\n", OTHER), ("# pinned by hand\n", "none"), ("", "none")]
)
def test_a_lock_of_another_request_is_refused(directory, tmp_path, first, names):
    """No node would count it as its own: each run would distribute and install it again."""
    (tmp_path / f"{DIGEST}.txt").write_text(first + LOCK.partition("\n")[2])
    with pytest.raises(ProblemError) as refused:
        choose({"gpu-1": described()}, directory, judge)
    assert f"(It is the lock of request {names}, not of {DIGEST}; " in describe_all(refused.value.problems)


def test_a_file_that_is_no_text_is_refused_by_its_path(directory, tmp_path):
    (tmp_path / f"{DIGEST}.txt").write_bytes(b"\xff\xfe\x00torch")
    with pytest.raises(ProblemError) as refused:
        choose({"gpu-1": described()}, directory, judge)
    assert refused.value.problems[0].subject == f"{directory}/{DIGEST}.txt"
    assert describe_all(refused.value.problems)


def test_only_what_is_not_kept_is_written(directory):
    plan = {
        DIGEST: {"host": "a", "lock": LOCK},
        OTHER: {"host": "b", "lock": "new"},
        "e" * 16: {"host": "c", "lock": ""},
    }
    assert new_locks(plan, directory) == [{"path": f"{directory}/{OTHER}.txt", "content": "new"}]
    assert new_locks({DIGEST: {"host": "a", "lock": "renewed"}}, directory)[0]["content"] == "renewed"
    assert new_locks(plan, "") == []
