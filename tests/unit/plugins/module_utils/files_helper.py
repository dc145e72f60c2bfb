# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a recorded machine's files: {path: text, or ("link", target)}."""

from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree


def tree(root: Path, files: dict) -> FileTree:
    for path, content in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, tuple):
            place.symlink_to(content[1])
        else:
            place.write_text(content)
    return FileTree(str(root))
