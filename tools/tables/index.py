# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to the package index: pip and uv ask the one that they are configured for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from packaging.version import Version


class NoAnswer(RuntimeError):
    """A client that got nothing from the index; the text is what it said last."""


def releases(name: str, pythons: Iterable[str]) -> dict[str, str]:
    """Return the stable releases of a package, oldest first, each with the oldest of these Pythons that it has a wheel for."""
    return {release: found[0] for release, found in wheel_pythons(name, pythons).items()}


def wheel_pythons(name: str, pythons: Iterable[str]) -> dict[str, list[str]]:
    """Return the stable releases of a package, oldest first, each with those of these Pythons that it has a wheel for."""
    found: dict[str, list[str]] = {}
    said = ""
    for python in sorted(pythons, key=Version):
        # pip fails where an index has no wheel for a Python, and where it does not answer: none at all is the latter.
        done = _run("pip", "index", "versions", name, "--json", "--python-version", python)
        said = done.stderr or said
        for release in json.loads(done.stdout)["versions"] if done.returncode == 0 else ():
            found.setdefault(release, []).append(python)
    if not found:
        raise NoAnswer(_last_line(said))
    # Builds with a local version, such as 2.13.0+cpu, are no releases of the index but of a directory beside it.
    return {one: found[one] for one in sorted(found, key=Version) if Version(one).local is None}


def lock(name: str, release: str, python: str) -> str:
    """Return a pylock.toml (PEP 751) that names every wheel of a release for a Python or a newer one."""
    arguments = (
        "compile",
        "--quiet",
        "--universal",
        "--no-deps",
        "--python-version",
        python,
        "--format",
        "pylock.toml",
    )
    return _output("uv", "pip", *arguments, "-", text=f"{name}=={release}")


def requirements(name: str, release: str, python: str, platform: str | None = None) -> list[str]:
    """Return Requires-Dist of a release's wheel for a platform, or for this machine's."""
    return metadata(name, release, python, platform).get("requires_dist", [])


def metadata(name: str, release: str, python: str, platform: str | None = None) -> dict[str, Any]:
    """Return the metadata of a release's wheel for a platform, or for this machine's.

    Of an index without metadata files, fast-deps reads the end of the wheel only.
    """
    wheel = ["--only-binary", ":all:", "--python-version", python, *(["--platform", platform] if platform else [])]
    report = _output(
        "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--use-feature", "fast-deps",
        *wheel, "--report", "-", f"{name}==={release}",
    )  # fmt: skip
    return json.loads(report)["install"][0]["metadata"]


def _output(*arguments: str, text: str | None = None) -> str:
    done = _run(*arguments, text=text)
    if done.returncode != 0:
        raise NoAnswer(_last_line(done.stderr))
    return done.stdout


def _run(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", *arguments], input=text, capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["the index gave no answer"])[-1]
