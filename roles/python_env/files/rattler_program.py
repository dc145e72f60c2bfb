# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve and install conda's packages with py-rattler, the library behind pixi, for module conda_env.

usage: rattler --version
       rattler solve [--channel CHANNEL]... SPEC...
       rattler install PREFIX LOCK

Role python_env installs this file with py-rattler in a virtual environment of their own. What is fetched and unpacked lies in
CONDA_PKGS_DIRS. Answers are JSON: of the solution in libmamba's form, and of a failure as conda tells it.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

SECONDS = 600  # for the channels' indexes and the solution, together
DRAWN = " │├└─\n"


def parser():
    found = argparse.ArgumentParser(prog="rattler", allow_abbrev=False)
    found.add_argument("--version", action="version", version=f"rattler {version('py-rattler')}")
    commands = found.add_subparsers(dest="command", required=True)
    solving = commands.add_parser("solve", allow_abbrev=False)
    solving.add_argument("--channel", action="append", required=True)
    solving.add_argument("specs", nargs="+")
    installing = commands.add_parser("install", allow_abbrev=False)
    installing.add_argument("prefix", type=Path)
    installing.add_argument("lock", type=Path)
    return found


async def solve(words, cache):
    """Return the packages for this machine: its glibc and its driver count, and a package comes from the first channel that has it."""
    import rattler

    solution = rattler.solve(
        [rattler.Channel(name) for name in words.channel],
        words.specs,
        gateway=rattler.Gateway(cache_dir=cache / "channels"),
        virtual_packages=rattler.VirtualPackage.detect(rattler.VirtualPackageOverrides.from_env()),
        channel_priority=rattler.ChannelPriority.Strict,
    )
    found = await asyncio.wait_for(solution, SECONDS)
    packages = [
        {"name": one.name.normalized, "url": one.url, "sha256": one.sha256.hex() if one.sha256 else None}
        for one in found
    ]
    return {"actions": {"LINK": packages}}


def records(lock, cache):
    """Return the records of the packages of a lock, from the packages. Module conda_env fetched them, and compared them with the lock."""
    import rattler
    from rattler.rattler import extract  # as rattler.package_streaming has it, which Python 3.8 cannot import

    found, place = [], cache / "described"
    for url, digest in [line.split("#sha256:") for line in lock.splitlines() if line[:1] not in ("#", "@", "")]:
        channel, _subdir, file = url.rsplit("/", 2)
        extract(unquote(urlsplit(url).path), place)
        record = rattler.PackageRecord.from_index_json(place / "info" / "index.json", sha256=digest)
        found.append(rattler.RepoDataRecord(record, file, url, channel))
        shutil.rmtree(place)
    return found


async def install(words, cache):
    """Install the packages, and write the entry of the history that says so, which rattler leaves to its caller."""
    import rattler

    cache.mkdir(parents=True, exist_ok=True)
    wanted = records(words.lock.read_text(encoding="utf-8"), cache)
    await rattler.install(wanted, words.prefix, cache_dir=cache / "packages", show_progress=False)
    entry = [time.strftime("==> %Y-%m-%d %H:%M:%S <=="), f"# cmd: {' '.join(sys.argv)}"]
    entry += [f"+{one.url}" for one in wanted]
    with (words.prefix / "conda-meta" / "history").open("a", encoding="utf-8") as stream:
        stream.write("".join(f"{line}\n" for line in entry))
    return {"success": True}


def failure(error):
    """Return the failure in conda's form; rattler draws the packages that do not fit together as a tree."""
    if isinstance(error, asyncio.TimeoutError):
        return {"exception_name": "TimeoutError", "message": f"no solution within {SECONDS} seconds"}
    said = sentence(str(error).replace("Cannot solve the request because of: ", "").splitlines())
    return {"exception_name": type(error).__name__, "message": said}


def sentence(lines):
    """Join a tree of reasons, and the last of the causes after a sentence of the network."""
    text, before = "", 0
    causes = [line for line in lines if line.startswith("Caused by: ")]
    for line in lines:
        said = line.strip(DRAWN)
        if said and line not in causes:
            deeper, before = line.index(said) > before, line.index(said)
            introduced = text.endswith((":", " require", " constrain"))
            text += ("" if not text else " " if introduced else ": " if deeper else "; ") + said.rstrip(".")
    return f"{text} ({causes[-1].partition(': ')[2]})" if causes else text


def main():
    words = parser().parse_args()
    cache, step = Path(os.environ["CONDA_PKGS_DIRS"]), {"solve": solve, "install": install}[words.command]
    try:
        answer, status = asyncio.run(step(words, cache)), 0
    except Exception as error:
        answer, status = failure(error), 1
    print(json.dumps(answer))
    sys.stdout.flush()
    os._exit(status)  # threads of rattler's crash a Python that ends, now and then (seen with 0.28.0)


if __name__ == "__main__":
    main()
