# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release that the tables lack is planned from an index on this machine, from the lock without it, or refused with what to do."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.published import index_of, tables_for
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.why import explanation
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES

from tests.support.package_index import OWN_CLIENTS, serving

sys.path.insert(0, str(Path(__file__).parents[1] / "stack"))

from checker import check  # noqa: E402 (a neighbour, found through the line above)

RECORDED = Path(__file__).parents[1] / "releases" / "recorded" / "requires.yml"
REQUIRES = yaml.safe_load(RECORDED.read_text(encoding="utf-8"))["torch-2.15.0"]
TAGS = [
    f"cp3{minor}-cp3{minor}-manylinux_2_28_{arch}" for minor in range(11, 16) for arch in ("x86_64", "aarch64")
]  # as the index has them


@pytest.fixture(scope="module")
def older():
    """The tables as they were before PyTorch 2.15.0."""
    torch = TABLES.subjects["torch"]
    rows = [row for row in torch["rows"] if row["version"] != "2.15.0"]
    return replace(TABLES, subjects={**TABLES.subjects, "torch": {**torch, "rows": rows}})


@pytest.fixture(scope="module", autouse=True)
def own_clients():
    """pip and uv without what this machine's files say of other places."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OWN_CLIENTS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def index(own_clients):
    """Asked once for all tests, as for all nodes of a plan."""
    with serving({"torch": {"2.14.1": (TAGS[:8], REQUIRES), "2.15.0": (TAGS, REQUIRES)}}) as found:
        yield found


def question(pytorch="2.15", index=None, **request):
    asked = {"pytorch": pytorch, **request}
    return {"os": "ubuntu 24.04", "gpus": ["H100 SXM5 80GB"] * 8, "request": asked, "index": index}


def codes(error):
    return [one.code for one in error.value.problems]


def test_a_release_of_the_index_is_planned_with_a_warning_and_kept_in_the_lock(older, index, tmp_path):
    asked = question(index=index.url)
    tables = tables_for(asked, tables=older)
    stack = decide(asked, tables=tables)["stack"]
    assert stack["environments"][0]["requirements"] == ["torch==2.15.0", "numpy"]
    assert check(stack) == []  # whose own table has the release, with what a person verified of it
    assert "PyTorch 2.15.0 is not in the tables: its limits come from its own metadata" in stack["warnings"][0]
    assert [(one["component"], one["version"], one["source"]) for one in stack["published"]] == [
        ("pytorch", "2.15.0", "package index")
    ]
    assert not [path for path in index.asked if path.endswith(".whl")]
    assert explanation(tables, asked, "pytorch")["version"] == "2.15.0 (cu132)"

    path = tmp_path / "stack.lock.yml"
    path.write_text(lock.text(lock.renewed(None, [stack])), encoding="utf-8")
    offline = question()
    kept = tables_for(offline, str(path), tables=older)
    again = decide(offline, str(path), tables=kept)["stack"]
    assert {**again, "update": None} == {**lock.plain(stack), "update": None}
    assert again["update"] == []
    assert resolve(offline, kept)["stack"]["published"] == stack["published"]


@pytest.mark.parametrize(
    ("request_", "between"),
    [({"driver": "535"}, {"driver", "pytorch"}), ({"python": "3.10"}, {"python", "pytorch"})],
    ids=["CUDA 13 on an old driver", "a Python without wheels"],
)
def test_what_the_metadata_rules_out_is_refused(older, index, request_, between):
    asked = question(index=index.url, **request_)
    answer = decide(asked, tables=tables_for(asked, tables=older))
    assert answer["stack"] is None
    assert between <= set(answer["conflicts"][0]["between"])


def test_a_release_that_nobody_has_is_refused_as_before(older, index):
    with pytest.raises(ProblemError) as error:
        tables_for(question("2.98", index=index.url), tables=older)
    assert codes(error) == ["unknown_version", "index_lacks"]


def test_metadata_without_a_cuda_is_not_guessed_at(older):
    with serving({"torch": {"2.15.0": (TAGS, ["numpy"])}}) as bare, pytest.raises(ProblemError) as error:
        tables_for(question(index=bare.url), tables=older)
    assert codes(error) == ["unknown_version", "index_untold"]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("http://127.0.0.1:1/simple", "index_silent"),
        ("http://index.example/simple", "index_silent"),
        (None, "index_not_asked"),
    ],
    ids=["nobody there", "no TLS", "not allowed"],
)
def test_without_an_index_it_is_refused_with_what_to_do(older, address, code):
    with pytest.raises(ProblemError) as error:
        tables_for(question(index=address), tables=older)
    assert codes(error) == ["unknown_version", code]
    assert describe_all(error.value.problems).startswith("pytorch '2.15' is not known")


def test_an_index_is_not_asked_for_what_the_tables_have(index):
    before = len(index.asked)
    assert tables_for(question("2.13.0", index=index.url)) is load()
    assert tables_for(question("latest", driver="1", index=index.url)) is load()
    assert len(index.asked) == before


def test_a_renewed_plan_reads_again_and_keeps_what_it_has_without_an_answer(older, index, tmp_path):
    stack = lock.plain(decide(question(), tables=tables_for(question(index=index.url), tables=older))["stack"])
    stack["published"][0]["read"] = "2026-12-01"
    path = tmp_path / "stack.lock.yml"
    path.write_text(lock.text(lock.renewed(None, [stack])), encoding="utf-8")

    renewed = tables_for(question(index=index.url), str(path), renew=True, tables=older)
    silent = tables_for(question(index="http://127.0.0.1:1/simple"), str(path), renew=True, tables=older)
    assert renewed.published[0]["read"] != "2026-12-01"
    assert silent.published[0]["read"] == "2026-12-01"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ""),
        ({"python_env_index_url": "https://index.example/simple"}, "https://index.example/simple"),
        ({"stack_read_index": False}, None),
        ({"python_env_no_index": "on", "python_env_index_url": "https://index.example/simple"}, None),
    ],
)
def test_which_index_may_be_asked(variables, expected):
    assert index_of(variables) == expected


def test_a_host_without_gpus_takes_the_build_that_the_index_has(older, index):
    asked = {**question(index=index.url, pytorch_index="pypi"), "gpus": []}
    environment = decide(asked, tables=tables_for(asked, tables=older))["stack"]["environments"][0]
    assert (environment["requirements"], environment["index"]) == (["torch==2.15.0", "numpy"], None)
