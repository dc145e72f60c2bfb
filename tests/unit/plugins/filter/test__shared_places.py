# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.filter._shared_places import FilterModule

PLACES = {"main": {"directory": ".main-0123456789ab", "switch": True, "late": False, "conda_lock": ""}}
HOSTVARS = {
    "gpu-1": {"places": PLACES, "marker": {"failed": True, "msg": "Read-only file system"}, "seen": {"stdout_lines": ["2"]}},
    "gpu-2": {"places": PLACES, "marker": {"path": "/e/2"}, "seen": {"stdout_lines": ["2"]}},
    "gpu-3": {"places": PLACES, "marker": {"path": "/e/3"}, "seen": {"stdout_lines": ["3"]}},
    "gpu-4": {"places": PLACES},
    "login": {},
}  # fmt: skip


def test_those_that_see_a_file_share_with_whom_made_it():
    found = FilterModule().filters()["_shared_places"](list(HOSTVARS), HOSTVARS, "places", "marker", "seen")
    assert {host: (one["leader"], one["shared"]) for host, one in found.items()} == {
        "gpu-1": ("gpu-2", True),
        "gpu-2": ("gpu-2", True),
        "gpu-3": ("gpu-3", False),
        "gpu-4": ("gpu-4", False),
    }
