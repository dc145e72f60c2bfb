# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import base64
import hashlib
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.installed_files import changed_file
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

SITE, ENTRY = "/env/lib/python3.11/site-packages", "torch-2.13.0.dist-info"
TEXT = "import this"
WRITTEN = 1_700_000_000  # when the installer wrote RECORD


def row(path, text=TEXT):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(text)}"


@pytest.fixture
def package(tmp_path):
    """A package as its installer leaves it; package(change) makes a change to it and says which file is not as installed."""
    record = [
        row("torch/a.py"),
        row('"torch/b, c.py"'),
        row("../../../bin/torchrun"),
        "torch/a.pyc,,",
        row("torch/__pycache__/shipped.cpython-311.pyc"),
        f"{ENTRY}/RECORD,,",
    ]
    names = (
        "torch/a.py",
        "torch/b, c.py",
        "../../../bin/torchrun",
        "torch/__pycache__/shipped.cpython-311.pyc",
    )
    files = tree(
        tmp_path,
        {
            **{os.path.normpath(f"{SITE}/{name}"): TEXT for name in names},
            f"{SITE}/{ENTRY}/RECORD": "\n".join(record) + "\n",
        },
    )
    site = tmp_path / SITE.lstrip("/")
    for name in (*names, f"{ENTRY}/RECORD"):
        os.utime(site / name, (WRITTEN, WRITTEN))

    def changed(change):
        change(site)
        return changed_file(files, SITE, ENTRY)

    return changed


def written(path, text, when):
    """A change: a file that has TEXT since WHEN."""

    def change(site):
        (site / path).write_text(text)
        os.utime(site / path, (when, when))

    return change


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda site: None, None),
        (written("torch/a.pyc", "compiled later", WRITTEN + 9), None),
        # A wheel may bring bytecode (numpy 2.2 does); Python writes it anew, as its source has another time there.
        (written("torch/__pycache__/shipped.cpython-311.pyc", "compiled again", WRITTEN + 9), None),
        (written("torch/mine.py", "nobody installed this", WRITTEN + 9), None),
        (written("torch/a.py", TEXT, WRITTEN + 9), None),  # read, as it is newer, and found unchanged
        (written("torch/a.py", "import that", WRITTEN + 9), "torch/a.py"),
        (written("torch/a.py", "import", WRITTEN), "torch/a.py"),
        (written("torch/a.py", "import that", WRITTEN), None),  # size and time of the original: what is not found
        (written("torch/b, c.py", "", WRITTEN + 9), "torch/b, c.py"),
        (lambda site: (site / "../../../bin/torchrun").unlink(), "../../../bin/torchrun"),
        (lambda site: (site / ENTRY / "RECORD").unlink(), f"{ENTRY}/RECORD"),
        (lambda site: (site / "torch" / "a.py").unlink() or (site / "torch" / "a.py").mkdir(), "torch/a.py"),
    ],
)
def test_the_first_file_that_is_not_as_it_was_installed(package, change, path):
    assert package(change) == path


def test_a_record_that_cannot_be_read(package):
    def damage(site):
        (site / ENTRY / "RECORD").write_bytes(b"\xff\xfe,sha256=x,1\n")

    assert package(damage) is not None
