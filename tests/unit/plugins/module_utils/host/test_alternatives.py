# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.alternatives import read_alternative
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

HOME = "/usr/local/cuda-12.4"


@pytest.mark.parametrize("directory", ["/var/lib/dpkg/alternatives", "/var/lib/alternatives"])
@pytest.mark.parametrize(
    ("text", "link", "found"),
    [
        ("manual\n/usr/local/cuda\n\n", HOME, {"manual": True, "target": HOME}),
        ("auto\n/usr/local/cuda\n\n", HOME, {"manual": False, "target": HOME}),
        ("manual\n/usr/local/cuda\n\n", None, None),
        ("", HOME, None),
        ("another format\n", HOME, None),
    ],
)
def test_alternative(tmp_path, directory, text, link, found):
    files = tree(tmp_path, {f"{directory}/cuda": text})
    if link:
        (tmp_path / "etc/alternatives").mkdir(parents=True)
        (tmp_path / "etc/alternatives/cuda").symlink_to(link)
    assert read_alternative(files, "cuda") == found
    assert read_alternative(files, "java") is None
