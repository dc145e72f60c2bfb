# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signature of a release is the one that ansible-galaxy demands, and changed files do not pass it."""

import io
import sys
import tarfile

import pytest

from .conftest import run
from .galaxy_server import serving

ARCHIVE = "allreduce-gpu-0.1.0.tar.gz"


@pytest.fixture
def galaxy(released, gnupg, tmp_path):
    """Run ansible-galaxy collection in a directory of its own, with the public key."""
    env = {**gnupg.env, "HOME": str(tmp_path), "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections")}
    demand = ("--keyring", gnupg.keyring, "--required-valid-signature-count", "+all")

    def call(action, *arguments, check=True):
        command = (sys.executable, "-m", "ansible", "galaxy", "collection", action, *demand, *arguments)
        return run(*command, cwd=tmp_path, env=env, check=check)

    return call


def install(galaxy, archive, signature, check=True):
    with serving(archive, signature) as address:
        return galaxy("install", "--server", address, "--no-cache", "allreduce.gpu:0.1.0", check=check)


def test_installed_from_a_server_with_its_signature(released, galaxy, tmp_path):
    install(galaxy, released.files[ARCHIVE], released.files["MANIFEST.json.asc"])
    assert (tmp_path / "collections" / "ansible_collections" / "allreduce" / "gpu" / "MANIFEST.json").is_file()


def test_an_archive_with_another_manifest_is_not_installed(released, galaxy, tmp_path):
    """Whoever changes a file must change its digest in MANIFEST.json, which is signed."""
    other = tmp_path / ARCHIVE
    with tarfile.open(released.files[ARCHIVE]) as opened, tarfile.open(other, "w:gz") as written:
        for member in opened:
            content = opened.extractfile(member) if member.isfile() else None
            if member.name == "MANIFEST.json":
                text = content.read().replace(b"gpu authors", b"gpu Authors")
                content, member.size = io.BytesIO(text), len(text)
            written.addfile(member, content)
    found = install(galaxy, other, released.files["MANIFEST.json.asc"], check=False)
    assert found.returncode != 0
    assert "signature verification failed" in (found.stdout + found.stderr).lower()
    assert not (tmp_path / "collections" / "ansible_collections" / "allreduce" / "gpu" / "README.md").exists()


def test_verified_after_the_installation_of_a_file(released, gnupg, galaxy, tmp_path):
    env = {**gnupg.env, "HOME": str(tmp_path)}
    command = (sys.executable, "-m", "ansible", "galaxy", "collection", "install", "--offline", "-p", "collections")
    run(*command, released.files[ARCHIVE], cwd=tmp_path, env=env)
    offline = ("verify", "--offline", "--signature", released.files["MANIFEST.json.asc"].as_uri(), "allreduce.gpu")
    galaxy(*offline)

    changed = tmp_path / "collections" / "ansible_collections" / "allreduce" / "gpu" / "README.md"
    changed.write_text("another\n", encoding="utf-8")
    found = galaxy(*offline, check=False)
    assert found.returncode != 0
    assert "README.md" in found.stdout
