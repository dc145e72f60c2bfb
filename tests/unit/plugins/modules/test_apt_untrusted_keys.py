# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four cases of the module as Ansible runs it, with keys of the real gpg."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import apt_untrusted_keys

COLLECTIONS = str(Path(apt_untrusted_keys.__file__).resolve().parents[2] / ".collections")

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg")


@pytest.fixture(scope="module")
def gpg(tmp_path_factory):
    home = tmp_path_factory.mktemp("gpg")
    home.chmod(0o700)

    def call(*arguments):
        command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    for name in ("old", "kept"):
        call("--quick-generate-key", name, "rsa2048", "sign")
    return call


@pytest.fixture(scope="module")
def old(gpg):
    """Fingerprint of the key that has to go."""
    return next(
        line.split(":")[9]
        for line in gpg("--with-colons", "--fingerprint", "old").decode().splitlines()
        if "fpr" in line
    )


@pytest.fixture
def root(tmp_path, gpg):
    parts = tmp_path / "etc/apt/trusted.gpg.d"
    parts.mkdir(parents=True)
    (tmp_path / "etc/apt/trusted.gpg").write_bytes(gpg("--export"))
    (parts / "old.asc").write_bytes(gpg("--armor", "--export", "old"))
    (parts / "kept.gpg").write_bytes(gpg("--export", "kept"))
    return tmp_path


def run(root, fingerprint, check=False):
    arguments = {"fingerprints": [fingerprint], "root": str(root), "_ansible_check_mode": check}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.apt_untrusted_keys"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


def contents(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_change(root, old, gpg):
    assert run(root, old)["changed_paths"] == [
        str(root / "etc/apt/trusted.gpg"),
        str(root / "etc/apt/trusted.gpg.d/old.asc"),
    ]
    kept = gpg("--export", "kept")
    assert contents(root) == {"etc/apt/trusted.gpg": kept, "etc/apt/trusted.gpg.d/kept.gpg": kept}


def test_change_in_check_mode(root, old):
    before = contents(root)
    assert run(root, old, check=True)["changed"]
    assert contents(root) == before


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(root, old, check):
    run(root, old)
    assert run(root, old, check)["changed_paths"] == []


def test_what_is_no_keyring_is_left(root, old):
    (root / "etc/apt/trusted.gpg").write_bytes(b"KBXf")
    result = run(root, old)
    assert result["changed_paths"] == [str(root / "etc/apt/trusted.gpg.d/old.asc")]
    assert "no sequence of OpenPGP packets" in str(result["warnings"])
