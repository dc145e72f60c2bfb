# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.gpu_settings.request import refusal


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (None, ""),
        ({}, ""),
        ([], ""),
        ("", ""),
        ({"persistence_mode": True, "power_limit_watts": 250}, ""),
        ([{"ecc": "yes"}, {"gpus": ["A100"], "locked_clocks": {"graphics": 1410}}], ""),
        ({"power_limit_watts": 0}, "power_limit_watts is 0; give a number of watts, or default"),
        (
            [{}, {"compute_mode": "shared"}],
            "compute_mode is 'shared'; give one of default, exclusive_process, prohibited",
        ),
        ("all", "The declaration is 'all'; give a list of dictionaries"),
        ([250], "The declaration is [250]; give a list of dictionaries"),
    ],
)
def test_what_cannot_be_meant_is_refused(declaration, reason):
    assert refusal(declaration) == reason
