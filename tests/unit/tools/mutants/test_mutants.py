# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation tests: which subjects there are, and how their result is counted."""

import pytest
import tomllib

from tools.mutants.__main__ import CHECKOUT, chosen, configuration, score
from tools.mutants.subjects import SUBJECTS


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_code_and_tests_of_a_subject_are_there(subject):
    assert list((CHECKOUT / subject.tests).glob("test_*.py"))
    for pattern in subject.only or ("*.py",):
        assert list((CHECKOUT / subject.code).glob(pattern)), pattern
    for name in (*subject.by, *subject.ignored):
        assert (CHECKOUT / subject.tests / name).is_file(), name
    assert all((CHECKOUT / path).is_file() for path in subject.also)


def test_all_of_a_subject_or_single_files():
    assert chosen(["drift"]) == {"drift": SUBJECTS["drift"]}
    assert chosen(["drift/kernels", "drift/names"])["drift"].only == ("kernels.py", "names.py")
    with pytest.raises(SystemExit, match="There is no subject drit; use one of topology, drift"):
        chosen(["drit"])


def test_what_mutmut_reads():
    read = tomllib.loads(configuration(chosen(["drift/kernels"])["drift"]))["tool"]["mutmut"]
    root = "ansible_collections/allreduce/gpu"
    assert read["source_paths"] == [f"{root}/plugins/plugin_utils/drift"]
    assert read["only_mutate"] == [f"{root}/plugins/plugin_utils/drift/kernels.py"]
    assert read["pytest_add_cli_args_test_selection"] == [f"{root}/tests/unit/plugins/plugin_utils/drift"]
    assert f"--ignore={root}/tests/unit/plugins/plugin_utils/drift/test_properties.py" in read["pytest_add_cli_args"]


def test_named_tests_are_all_that_run():
    read = tomllib.loads(configuration(SUBJECTS["stack"]))["tool"]["mutmut"]
    tests = "ansible_collections/allreduce/gpu/tests/unit/plugins/plugin_utils/stack"
    names = ("test_blame.py", "test_clauses.py", "test_search.py", "test_versions.py")
    assert read["pytest_add_cli_args_test_selection"] == [f"{tests}/{name}" for name in names]


@pytest.mark.parametrize(
    ("found", "percent"),
    [
        ({"killed": 9, "timeout": 0, "survived": 1, "no_tests": 0, "total": 10}, 90.0),
        ({"killed": 8, "timeout": 1, "survived": 1, "no_tests": 0, "total": 10}, 90.0),
        ({"killed": 5, "timeout": 0, "survived": 0, "no_tests": 5, "total": 10}, 50.0),
        ({"killed": 0, "timeout": 0, "survived": 0, "no_tests": 0, "total": 0}, 0.0),
    ],
)
def test_what_no_test_reaches_counts_as_a_survivor(found, percent):
    assert score(found) == percent
