# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which program is used, what is said to it, and what is understood of its answers.

conda 26.7.1 printed what is marked as its own, from its sources with the classic solver. What is marked as libmamba's is written after
its sources (2.8.1, transaction.cpp and package_info.cpp): no micromamba ran here.
"""

import json
import re
import string
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import conda_describe, conda_program

A = "https://conda.anaconda.org/conda-forge/linux-64/a-1-0.conda"
B = "https://conda.anaconda.org/conda-forge/noarch/b-1-0.conda"


@pytest.mark.parametrize(
    ("path", "output", "kind", "version"),
    [
        ("/x/conda", "conda 26.7.1\n", "conda", "26.7.1"),  # conda's own
        ("/x/conda", "conda 0.0.0.dev0+placeholder\n", "conda", "0.0.0.dev0+placeholder"),  # conda's own, from sources
        ("/x/mamba", "mamba 1.5.8\nconda 24.1.2\n", "mamba", "1.5.8"),
        ("/x/mamba", "2.3.0\n", "mamba", "2.3.0"),
        ("/x/micromamba", "2.8.1\n", "micromamba", "2.8.1"),
        ("/x/rattler", "rattler 0.25.0\n", "rattler", "0.25.0"),
        ("/x/micromamba-2.8.1-1-linux-64", "2.8.1", "micromamba", "2.8.1"),
    ],
)
def test_versions(path, output, kind, version):
    assert conda_program.parse_version(path, output) == {"kind": kind, "path": path, "version": version}


@pytest.mark.parametrize("output", ["", "usage: mamba [-h]\n", "mamba: the definitive testing tool"])
def test_no_version(output):
    assert conda_program.parse_version("/x/mamba", output) is None


def programs(place, answers):
    """Write programs into a directory; return (their paths, function that runs them)."""
    for name in answers:
        (place / name).write_text("")
        (place / name).chmod(0o755)
    return lambda command: (0, answers[Path(command[0]).name])


@pytest.mark.parametrize(
    ("answers", "chosen", "code"),
    [
        ({"micromamba": "2.1.0", "mamba": "2.3.0", "conda": "conda 24.9.0"}, "micromamba", None),
        ({"micromamba": "1.5.8", "mamba": "mamba 1.5.8\nconda 24.1", "conda": "conda 24.9.0"}, "conda", None),
        ({"micromamba": "2.0.8", "conda": "conda 24.7.1"}, None, "conda_program_old"),
        ({"mamba": "nothing"}, None, "conda_program_old"),
        ({}, None, "conda_program_missing"),
    ],
)
def test_the_first_that_is_new_enough(tmp_path, monkeypatch, answers, chosen, code):
    monkeypatch.setattr(conda_program, "OWN", str(tmp_path / "own"))
    monkeypatch.setattr(conda_program, "PLACES", ())
    run = programs(tmp_path, answers)
    on_path = {name: str(tmp_path / name) for name in answers}
    program, problems = conda_program.find(None, on_path.get, run)
    assert (program and Path(program["path"]).name) == chosen
    assert [one["code"] for one in problems] == ([code] if code else [])


def test_the_named_program_alone(tmp_path):
    run = programs(tmp_path, {"conda": "conda 24.7.1", "micromamba": "2.8.1"})
    program, problems = conda_program.find(str(tmp_path / "conda"), lambda name: str(tmp_path / name), run)
    assert program is None
    assert problems[0]["subject"] == "%s (24.7.1)" % (tmp_path / "conda")


def program(kind):
    return {"kind": kind, "path": "/x/" + kind, "version": "1"}


def test_ours_is_used_where_there_is_no_other(tmp_path, monkeypatch):
    run = programs(tmp_path, {"rattler": "rattler 0.25.0", "conda": "conda 24.9.0"})
    monkeypatch.setattr(conda_program, "RATTLER", str(tmp_path / "rattler"))
    monkeypatch.setattr(conda_program, "OWN", str(tmp_path / "own"))
    for places, kind in (((), "rattler"), ((str(tmp_path),), "conda")):
        monkeypatch.setattr(conda_program, "PLACES", places)
        assert conda_program.find(None, lambda name: None, run)[0]["kind"] == kind


@pytest.mark.parametrize(("kind", "own"), [("conda", ["--no-default-packages"]), ("mamba", []), ("micromamba", [])])
def test_commands(kind, own):
    created = conda_program.creation(program(kind), "/p", "/lock.txt")
    assert created == ["/x/" + kind, "create", "--yes", "--quiet", "--prefix", "/p"] + own + ["--file", "/lock.txt"]
    solved = conda_program.solution(program(kind), "/p", ["c", "d"], ["python=3.12"])
    words = ["--override-channels", "--channel", "c", "--channel", "d", "python=3.12"]
    assert solved == ["/x/" + kind, "create", "--yes", "--dry-run", "--json", "--prefix", "/p"] + own + words


def test_commands_of_rattler():
    assert conda_program.creation(program("rattler"), "/p", "/lock.txt") == ["/x/rattler", "install", "/p", "/lock.txt"]
    solved = conda_program.solution(program("rattler"), "/p", ["c", "d"], ["python=3.12"])
    assert solved == ["/x/rattler", "solve", "--channel", "c", "--channel", "d", "python=3.12"]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("rattler", "SolverError", "conda_unsolvable"),
        ("rattler", "GatewayError", "conda_unreachable"),
        ("rattler", "InvalidMatchSpecError", "conda_failed"),
        ("conda", "SolverError", "conda_failed"),
    ],
)
def test_failures(kind, name, code):
    said = json.dumps({"exception_name": name, "message": "no b for a"})
    found = conda_program.failure(program(kind), 1, said)
    assert (found["code"], found["detail"]["reason"]) == (code, "no b for a")


def test_the_environment_of_a_program():
    found = conda_program.environment(program("micromamba"), "/cache", {"https_proxy": "http://p"})
    assert (found["https_proxy"], found["CONDA_PKGS_DIRS"], found["MAMBA_ROOT_PREFIX"]) == (
        "http://p",
        "/cache",
        "/cache/root",
    )
    assert "MAMBA_ROOT_PREFIX" not in conda_program.environment(program("conda"), "/cache", {})


# conda's own, with fewer lines: addresses stand in FETCH, names alone in LINK.
CONDA = {
    "success": True,
    "actions": {
        "FETCH": [{"name": "a", "url": A, "sha256": "1" * 64}, {"name": "b", "url": B, "sha256": "2" * 64}],
        "PREFIX": "/p",
        "LINK": [{"name": "a", "dist_name": "a-1-0"}, {"name": "b", "dist_name": "b-1-0"}],
    },
    "dry_run": True,
}
# libmamba's.
MAMBA = {
    "actions": {"LINK": [{"name": "a", "url": A, "sha256": "1" * 64}, {"name": "b", "url": B, "sha256": "2" * 64}]}
}
UNCHECKED = {"actions": {"LINK": [{"name": "a", "url": A, "md5": "1" * 32}]}}
CACHED = {"actions": {"LINK": [{"name": "a", "dist_name": "a-1-0"}]}}


@pytest.mark.parametrize(
    "said", [json.dumps(CONDA), "warning  libmamba slow {disk}\n".replace("{disk}", "disk") + json.dumps(MAMBA)]
)
def test_solutions(said):
    lock, problems = conda_program.read_solution(said, "linux-64")
    assert problems == []
    assert lock == f"# platform: linux-64\n@EXPLICIT\n{A}#sha256:{'1' * 64}\n{B}#sha256:{'2' * 64}\n"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (json.dumps(UNCHECKED), "conda_solution_unchecked"),
        (json.dumps(CACHED), "conda_solution_unchecked"),
        ('{"success": true}', "conda_solution_empty"),
        ("", "conda_solution_empty"),
    ],
)
def test_no_solution(said, code):
    lock, problems = conda_program.read_solution(said, "linux-64")
    assert (lock, [one["code"] for one in problems]) == (None, [code])


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ('{"error": "X: y", "message": "The following packages are not available\\n\\n  - nump\\n"}', "The following packages are not available; - nump"),
        ('{"success": false, "solver_problems": ["nothing provides absent needed by odd-1.0-0"]}', "nothing provides absent needed by odd-1.0-0"),
        ('{"error": "UnsatisfiableError: ", "message": ""}', "UnsatisfiableError:"),
        ("one\ntwo\n\nthree\nfour\n", "two; three; four"),
        ("", "it says nothing"),
    ],
)  # fmt: skip
def test_reasons(output, reason):
    assert conda_program.reason(output) == reason


def test_every_problem_has_a_sentence():
    sources = Path(conda_describe.__file__).parent.glob("conda_*.py")
    codes = {code for path in sources for code in re.findall(r'"(conda_[a-z_]+)"', path.read_text(encoding="utf-8"))}
    assert codes == set(conda_describe.SENTENCES)
    fields = {
        name
        for text in conda_describe.SENTENCES.values()
        for _text, name, _spec, _how in string.Formatter().parse(text)
        if name
    }
    assert fields <= {"subject", "reason", "status", "expected", "found", "locked", "path"}


def test_no_password_is_shown():
    problem = {
        "code": "conda_not_fetched",
        "subject": "https://me:secret@example.org/t/token-1/c/noarch/a-1-0.conda",
        "detail": {"reason": "404"},
    }
    assert conda_describe.describe(problem) == "https://example.org/t/.../c/noarch/a-1-0.conda cannot be fetched: 404"
