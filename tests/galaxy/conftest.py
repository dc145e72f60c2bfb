# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A released copy of this checkout: committed, tagged, signed with a key that was made for it; installed with several ansible-cores."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from tools.release.source import git

CHECKOUT = Path(__file__).resolve().parents[2]
SIGNER = "Release test <release@example.org>"


def run(*command, cwd, env, check=True):
    found = subprocess.run([str(one) for one in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert not check or found.returncode == 0, found.stdout + found.stderr
    return found


def checkout(copy):
    """Make a repository of its own with the files of this checkout, none of them committed."""
    for name in git(CHECKOUT, "ls-files", "-co", "--exclude-standard").splitlines():
        source = CHECKOUT / name
        if source.is_symlink() or source.is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name, follow_symlinks=False)
    git(copy, "init", "--quiet")


def release_notes(copy):
    """Turn the fragments into release notes, as `make changelog` does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "ANSIBLE_CONFIG": str(copy / "ansible.cfg")}
    run(sys.executable, "-m", "antsibull_changelog", "release", "--reload-plugins", cwd=copy, env=environment)


def commit(copy):
    git(copy, "add", "--all")
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    git(copy, *identity, "commit", "--quiet", "--message", "Release")


@pytest.fixture(scope="package")
def gnupg():
    """The environment of a GnuPG with one secret key, and its public keyring."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    # Below /tmp whatever the test directory is: the path of the agent's socket must be short.
    # The agent removes its sockets itself, after it has answered that it ends.
    with TemporaryDirectory(prefix="gpg.", dir="/tmp", ignore_cleanup_errors=True) as directory:  # noqa: S108
        home = Path(directory)
        env |= {"GNUPGHOME": directory}
        unlocked = ("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "")
        run(*unlocked, "--quick-generate-key", SIGNER, "ed25519", "sign", "never", cwd=home, env=env)
        keyring = home / "public.kbx"
        key = home / "key.asc"
        run("gpg", "--batch", "--armor", "--output", key, "--export", SIGNER, cwd=home, env=env)
        run("gpg", "--batch", "--no-default-keyring", "--keyring", keyring, "--import", key, cwd=home, env=env)
        yield SimpleNamespace(env=env, keyring=keyring)
        run("gpgconf", "--kill", "all", cwd=home, env=env)


@pytest.fixture(scope="package")
def released(tmp_path_factory, gnupg):
    """The copy, and the files of its release."""
    place = tmp_path_factory.mktemp("release")
    copy = place / "checkout"
    checkout(copy)
    release_notes(copy)
    commit(copy)
    git(copy, "tag", "0.1.0")
    command = (sys.executable, "-m", "tools.release", "--key", SIGNER)
    said = run(*command, cwd=copy, env=gnupg.env).stdout
    directory = copy / "dist" / "allreduce-gpu-0.1.0"
    files = {path.name: path for path in directory.iterdir()}
    return SimpleNamespace(
        copy=copy, files=files, said=said, commit=git(copy, "rev-parse", "HEAD").strip(), env=gnupg.env
    )
