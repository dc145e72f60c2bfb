# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.watching import Sample, read

HEAD = {"quantities": ["utilization_percent", "power_watts"], "gpus": ["0000:1a:00.0"]}


def text(*lines):
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_what_a_node_wrote():
    found = read("gpu-1", text(HEAD, [10.0, [[93, 250]]], [12.0, [[None, 251]]]))
    assert (found.node, found.gpus) == ("gpu-1", ("0000:1a:00.0",))
    assert found.samples == (Sample(10.0, ((93, 250),)), Sample(12.0, ((None, 251),)))


def test_a_node_that_started_again_goes_on_in_its_file():
    assert len(read("gpu-1", text(HEAD, [10.0, [[93, 250]]], HEAD, [20.0, [[9, 250]]])).samples) == 2


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "no JSON\n",
        text([10.0, [[93, 250]]]),  # no head
        text(HEAD),
        text({**HEAD, "gpus": "all"}, [10.0, [[93, 250]]]),
        text({**HEAD, "quantities": [1]}, [10.0, [[93, 250]]]),
        text(HEAD, [10.0, [[93]]]),
        text(HEAD, [10.0, [[93, 250], [93, 250]]]),
        text(HEAD, [10.0, [["93", True]]]),
        text(HEAD, ["now", [[93, 250]]]),
        text(HEAD) + "[10.0, [[NaN, 250]]]\n[1e999, [[1, 1]]]\n",
        text(HEAD, [10**400, [[93, 250]]]),
        text(HEAD, [10.0, [[1e308, 250]]]),
        "[" * 100000,
    ],
)
def test_what_is_not_of_its_form_is_left_out(lines):
    assert read("gpu-1", lines) is None


def test_the_line_in_which_a_process_was_killed_is_left_out():
    assert len(read("gpu-1", text(HEAD, [10.0, [[93, 250]]]) + "[12.0, [[9").samples) == 1
