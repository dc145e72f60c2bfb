# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import hashlib
import os

from ansible_collections.allreduce.gpu.plugins.module_utils.host.nvml_binding import PATH, read_binding
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def test_binding(tmp_path):
    files = tree(tmp_path, {PATH: "binding\n"})
    place, me = tmp_path / PATH[1:], os.geteuid()
    place.chmod(0o644)
    assert read_binding(files, me) == hashlib.sha256(b"binding\n").hexdigest()
    assert read_binding(files, me + 1) is None, "somebody else can change it"
    place.chmod(0o666)
    assert read_binding(files, me) is None
    place.unlink()
    assert read_binding(files, me) is None
