# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.allreduce.gpu.plugins.filter.recorded_node import FilterModule

MATRIX = "GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-3\nGPU1 NV4 X 0-3\n"


def recorded_node(*arguments):
    return FilterModule().filters()["recorded_node"](*arguments)


def test_a_matrix_becomes_a_node():
    assert recorded_node(MATRIX)["topology"]["GPU0"] == {"GPU0": "X", "GPU1": "NV4"}


def test_what_the_text_cannot_tell_is_given():
    ports = {"mlx5_0": {"state": "ACTIVE", "link_layer": "InfiniBand", "rate_gbps": 400}}
    (nic,) = recorded_node("GPU0 mlx5_0\nGPU0 X PIX\nmlx5_0 PIX X\n", ports)["nics"]
    assert nic["ports"][0]["rate_gbps"] == 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MATRIX.replace("X NV4", "XNV4"), "recorded_node: Line 2 of the matrix cannot be read"),
        ("nothing", "recorded_node: This is not an output of"),
        (None, "takes the text"),
        ({"GPU0": "X"}, "takes the text"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_the_template(text, said):
    with pytest.raises(AnsibleFilterError, match=said):
        recorded_node(text)
