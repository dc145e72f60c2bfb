# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import inspect
import re

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem
from ansible_collections.allreduce.gpu.plugins.module_utils.training import run, states
from ansible_collections.allreduce.gpu.plugins.module_utils.training.describe import SENTENCES, describe


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_names_its_subject(code):
    sentence = describe(problem(code, "SUBJECT", mounts="/opt"))
    assert ("SUBJECT" in sentence) == (code != "not_root")
    assert sentence.endswith(".")


def test_the_codes_are_those_that_occur():
    source = inspect.getsource(run) + inspect.getsource(states)
    programs = {"no_mpirun", "no_horovodrun", "no_sbatch"}
    assert set(re.findall(r'problem\("(\w+)"', source)) | programs == set(SENTENCES)


@pytest.mark.parametrize("program", ["mpirun", "horovodrun", "sbatch"])
def test_a_program_that_is_missing_has_a_sentence_of_its_own(program, tmp_path):
    params = {
        "state": "started",
        "run_id": "run",
        "python": str(tmp_path / "python"),
        "user": "root",
        "programs": [str(tmp_path / program)],
        "address": "",
        "rendezvous": "10.0.0.1:29500",
    }
    refused = {one["code"]: describe(one) for one in states.refusals(params, lambda argv: (1, "", ""))}
    assert program in refused["no_" + program]
