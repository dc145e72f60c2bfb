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
    sentence = describe(problem(code, "SUBJECT"))
    assert ("SUBJECT" in sentence) == (code != "not_root")
    assert sentence.endswith(".")


def test_the_codes_are_those_that_occur():
    source = inspect.getsource(run) + inspect.getsource(states)
    assert set(re.findall(r'problem\("(\w+)"', source)) == set(SENTENCES)
