# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to the package index: pip and uv ask it. Metadata is read; nothing is built, so no code of a package runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from ...module_utils.host.download import without_password
from ..stack.libraries import Version, tomllib

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The first pip whose `index versions` has --json.
OLDEST_PIP = "25.1"
# Seconds to wait for an answer, and how often to try once more: a person waits for the plan.
PATIENCE = {"PIP_DEFAULT_TIMEOUT": "15", "PIP_RETRIES": "1", "UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "1"}


class NoAnswer(RuntimeError):
    """A client that got nothing from the index; the text is what it said last."""


@dataclass(frozen=True)
class Index:
    """A package index. url: empty for the one that pip and uv are configured for.

    builds: whether uv may build a release that has no wheel, which runs its code; hurried: whether a person waits
    """

    url: str = ""
    builds: bool = False
    hurried: bool = True

    def releases(self, name: str, pythons: Iterable[str]) -> dict[str, str]:
        """Return the stable releases of a package, oldest first, each with the oldest of these Pythons that it has a wheel for."""
        return {release: found[0] for release, found in self.wheel_pythons(name, pythons).items()}

    def wheel_pythons(self, name: str, pythons: Iterable[str]) -> dict[str, list[str]]:
        """Return the stable releases of a package, oldest first, each with those of these Pythons that it has a wheel for."""
        found: dict[str, list[str]] = {}
        said, asked = "", sorted(pythons, key=Version)
        # All at once where a person waits; the maintainer's reader asks for many packages at the same time instead.
        with ThreadPoolExecutor(len(asked) if self.hurried else 1) as side:
            answers = side.map(
                partial(self._run, "pip", "index", "versions", name, "--json", "--python-version"), asked
            )
        # pip fails where an index has no wheel for a Python, and where it does not answer: none at all is the latter.
        for python, done in zip(asked, answers, strict=True):
            said = done.stderr or said
            for release in json.loads(done.stdout)["versions"] if done.returncode == 0 else ():
                found.setdefault(release, []).append(python)
        if not found:
            raise NoAnswer(self._old_pip() or _last_line(said))
        # Builds with a local version, such as 2.13.0+cpu, are not releases of the index but of a directory next to it.
        return {one: found[one] for one in sorted(found, key=Version) if Version(one).local is None}

    def _old_pip(self) -> str:
        """Return the reason why pip cannot list releases, which its exit status does not tell from a crash; nothing where it can."""
        version = self._output("pip", "--version").split()[1]
        return (
            f"pip on the controller is {version}, and {OLDEST_PIP} or newer is needed (pip install --upgrade pip)"
            if Version(version) < Version(OLDEST_PIP)
            else ""
        )

    def lock(self, name: str, release: str, python: str) -> str:
        """Return a pylock.toml (PEP 751) that names every wheel of a release for a Python or a newer one."""
        if tomllib is None:
            raise NoAnswer("the Python that runs Ansible is older than 3.11")
        arguments = ("compile", "--quiet", "--universal", "--no-deps", *(() if self.builds else ("--no-build",)))
        options = ("--python-version", python, "--format", "pylock.toml", "-")
        text = self._output("uv", "pip", *arguments, *options, text=f"{name}=={release}")
        for one in tomllib.loads(text)["packages"][0].get("wheels", ()):
            _refuse_plain(one["url"])
        return text

    def requirements(self, name: str, release: str, python: str, platform: str | None = None) -> list[str]:
        """Return Requires-Dist of a release's wheel for a platform, or for this machine's."""
        found: list[str] = self.metadata(name, release, python, platform).get("requires_dist", [])
        return found

    def metadata(self, name: str, release: str, python: str, platform: str | None = None) -> dict[str, Any]:
        """Return the metadata of a release's wheel for a platform, or for this machine's.

        Of an index without metadata files, fast-deps reads the end of the wheel only.
        """
        wheel = ["--only-binary", ":all:", "--python-version", python, *(["--platform", platform] if platform else [])]
        report = self._output(
            "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--use-feature", "fast-deps",
            *wheel, "--report", "-", f"{name}==={release}",
        )  # fmt: skip
        found: dict[str, Any] = json.loads(report)["install"][0]["metadata"]
        return found

    def _output(self, *arguments: str, text: str | None = None) -> str:
        done = self._run(*arguments, text=text)
        if done.returncode != 0:
            raise NoAnswer(_last_line(done.stderr))
        return done.stdout

    def _run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        if self.url:
            _refuse_plain(self.url)
        # The address may hold a password: a command line is there for all to see, an environment is not.
        here = {"PIP_INDEX_URL": self.url, "UV_DEFAULT_INDEX": self.url} if self.url else {}
        environment = {**os.environ, **(PATIENCE if self.hurried else {}), **here}
        command = [*_program(arguments[0]), *arguments[1:]]
        try:
            return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise NoAnswer(f"{arguments[0]} is not installed on the controller") from None


def _program(name: str) -> list[str]:
    """Return the command that starts pip or uv: that of the running Python, else the one on the path."""
    return [sys.executable, "-m", name] if find_spec(name) else [name]


def _refuse_plain(address: str) -> None:
    """Refuse what is not read over TLS, nor from this machine."""
    parts = urlsplit(address)
    if parts.scheme not in ("https", "file", "") and parts.hostname not in LOOPBACK:
        raise NoAnswer(f"{parts.scheme}://{parts.hostname} is not read over TLS")


def _last_line(text: str) -> str:
    """Return the last line of a client, as it may be shown: the address of an index may hold a password."""
    return without_password((text.strip().splitlines() or ["the index gave no answer"])[-1])
