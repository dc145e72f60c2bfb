# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.allreduce.gpu.plugins.lookup.pynvml import LookupModule, pynvml_file


def finder(origin):
    return lambda name: ModuleSpec(name, None, origin=origin) if origin else None


def test_the_controllers_own_file_is_found():
    (path,) = LookupModule().run([])
    assert "def nvmlInit" in Path(path).read_text(encoding="utf-8")


def test_without_the_binding_the_message_says_what_to_install():
    with pytest.raises(AnsibleLookupError, match="pip install nvidia-ml-py"):
        pynvml_file(finder(None))


def test_an_old_package_of_that_name_is_refused():
    with pytest.raises(AnsibleLookupError, match="pip uninstall pynvml"):
        pynvml_file(finder("/usr/lib/python3/dist-packages/pynvml/__init__.py"))


def test_the_one_file_binding_is_taken():
    assert pynvml_file(finder("/x/pynvml.py")) == Path("/x/pynvml.py")
