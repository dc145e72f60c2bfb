# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import apt_sources
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ONE_LINE = """# deb http://x/ y main
deb [signed-by=/k arch=amd64] http://a.example/debian bookworm main contrib # ours
deb-src http://a.example/debian bookworm main
"""
DEB822 = """Types: deb deb-src
URIs: http://a.example/debian
Suites: bookworm bookworm-updates
Components: main
 non-free
Signed-By: /usr/share/k.gpg

Enabled: no
Types: deb
URIs: http://b
Suites: x
"""


def test_one_line_sources():
    expected = {
        "uri": "http://a.example/debian",
        "suite": "bookworm",
        "components": ["main", "contrib"],
        "signed_by": "/k",
        "types": ["deb"],
        "trusted": None,
    }
    assert [entry for entry in apt_sources.list_entries(ONE_LINE) if entry["types"] == ["deb"]] == [expected]


def test_deb822_sources():
    assert apt_sources.deb822_entries(DEB822) == [
        {
            "uri": "http://a.example/debian",
            "suite": "bookworm",
            "components": ["main", "non-free"],
            "signed_by": "/usr/share/k.gpg",
            "types": ["deb", "deb-src"],
            "trusted": None,
        },
        {
            "uri": "http://a.example/debian",
            "suite": "bookworm-updates",
            "components": ["main", "non-free"],
            "signed_by": "/usr/share/k.gpg",
            "types": ["deb", "deb-src"],
            "trusted": None,
        },
    ]


NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
D = "/etc/apt/sources.list.d/"
OURS = {
    D
    + "allreduce-cuda.sources": f"Types: deb\nURIs: {NVIDIA}\nSuites: /\nSigned-By: /etc/apt/keyrings/allreduce-cuda.asc\n"
}


def found(place, files):
    """(option, paths, ours) of each contradiction, paths without their directory."""
    return [
        (one["option"], *[[path.rpartition("/")[2] for path in one[key]] for key in ("paths", "ours")])
        for one in apt_sources.contradictions(apt_sources.read_entries(tree(place, files)))
    ]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {NVIDIA}/ /", "Signed-By"),
        (f"deb {NVIDIA} /", "Signed-By"),
        (f"deb-src [ arch=amd64 signed-by=/k ] {NVIDIA} /", "Signed-By"),
        (f"deb [trusted=yes signed-by=/etc/apt/keyrings/allreduce-cuda.asc] {NVIDIA} /", "Trusted"),
        (f"deb [signed-by=/etc/apt/keyrings/allreduce-cuda.asc] {NVIDIA}/ /", None),
        (f"deb [signed-by=/k] {NVIDIA} ./", None),
        (f"# deb [signed-by=/k] {NVIDIA} /", None),
    ],
)
def test_what_apt_refuses_to_read(tmp_path, line, option):
    expected = [(option, ["allreduce-cuda.sources", "cuda.list"], ["allreduce-cuda.sources"])] if option else []
    assert found(tmp_path, {**OURS, D + "cuda.list": line + "\n"}) == expected


def test_entries_of_the_main_list_and_of_one_file_count(tmp_path):
    files = {
        "/etc/apt/sources.list": "deb http://a.example/debian bookworm main\n",
        D
        + "debian.sources": "Types: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\nSigned-By: /k\n",
        D + "b.list": "deb [signed-by=/1] http://b.example x main\ndeb [signed-by=/2] http://b.example x contrib\n",
        D + "c.sources": "Enabled: no\nTypes: deb\nURIs: http://b.example\nSuites: x\n",
        D + "c.list.save": "deb http://b.example x main\n",
    }
    assert found(tmp_path, files) == [
        ("Signed-By", ["sources.list", "debian.sources"], []),
        ("Signed-By", ["b.list"], []),
    ]
