# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.cdi import PATHS, read_specifications
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

MOUNT = "  - containerPath: {0}\n    hostPath: {0}\n    options: [ro, nosuid, nodev, bind]\n"


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.535.261.03", "535.261.03"),
        ("/usr/lib64/libcuda.so.580.142", "580.142"),
        ("/usr/lib64/libcudadebugger.so.580.142", None),
        ("/usr/lib64/libcuda.so.1", None),
    ],
)
def test_the_driver_that_a_specification_is_for(tmp_path, library, version):
    text = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  mounts:\n" + MOUNT.format(library)
    assert read_specifications(tree(tmp_path, {PATHS[0]: text})) == {PATHS[0]: version}


def test_both_places_and_none(tmp_path):
    assert read_specifications(tree(tmp_path, {})) == {}
    files = tree(tmp_path, {PATHS[0]: "", PATHS[1]: MOUNT.format("/usr/lib/libcuda.so.570.86.15")})
    assert read_specifications(files) == {PATHS[0]: None, PATHS[1]: "570.86.15"}
