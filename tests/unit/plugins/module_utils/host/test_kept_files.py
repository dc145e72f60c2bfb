# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are put back as they were, and what has to be made above them is open to all."""

import os

from ansible_collections.allreduce.gpu.plugins.module_utils.host import kept_files
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def replace(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


def test_directories_are_made_open_whatever_the_umask(tmp_path, root_umask):
    here = tree(tmp_path, {})
    kept_files.put(here, "/etc/allreduce/a/b.json", {"content": "{}", "mode": "0640"}, replace)
    made = ["etc/allreduce", "etc/allreduce/a", "etc/allreduce/a/b.json"]
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in made] == ["0o755", "0o755", "0o640"]


def test_what_is_closed_is_so_from_the_beginning(tmp_path):
    """A module's replace gives a new file the rights that the umask leaves, as AnsibleModule.atomic_move does."""
    rights = []

    def telling(path, content):
        replace(path, content)
        rights.append(oct(os.stat(path).st_mode & 0o777))

    kept_files.put(tree(tmp_path, {}), "/record.json", {"content": "{}", "mode": "0600"}, telling)
    assert rights == ["0o600"]


def test_a_file_comes_back_as_it_was(tmp_path):
    here = tree(tmp_path, {"/etc/a": "text"})
    (tmp_path / "etc" / "a").chmod(0o600)
    entry = kept_files.read(here, "/etc/a")
    kept_files.put(here, "/etc/a", None, replace)
    assert kept_files.read(here, "/etc/a") is None
    kept_files.put(here, "/etc/a", entry, replace)
    assert kept_files.read(here, "/etc/a") == entry


def test_a_link_comes_back_as_a_link(tmp_path):
    here = tree(tmp_path, {"/etc/a": "text", "/etc/link": ("link", "a")})
    entry = kept_files.read(here, "/etc/link")
    kept_files.put(here, "/etc/link", {"content": "other", "mode": "0644"}, replace)
    assert here.text("/etc/a") == "text" and here.text("/etc/link") == "other"
    kept_files.put(here, "/etc/link", entry, replace)
    assert here.link("/etc/link") == "a"
