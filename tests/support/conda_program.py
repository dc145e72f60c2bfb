# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand where micromamba stands: solve and install with py-rattler what module conda_env asks for.

The packages, the channel, the solver, the installer and the records below conda-meta are real, of rattler. Not micromamba's are the
command line, which takes what module conda_env writes and nothing else, and the entry in conda-meta/history, which rattler leaves
out. CONDA_STANDIN_STOP=NAME kills it after the package of that name is installed, as a power cut would.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

VERSION = "2.8.1"


def parser():
    found = argparse.ArgumentParser(prog="micromamba", allow_abbrev=False)
    found.add_argument("command", choices=["create"])
    for flag in ("--yes", "--quiet", "--dry-run", "--json", "--override-channels"):
        found.add_argument(flag, action="store_true")
    found.add_argument("--prefix", type=Path, required=True)
    found.add_argument("--file", type=Path)
    found.add_argument("--channel", action="append", default=[])
    found.add_argument("specs", nargs="*")
    return found


async def solve(words):
    """Print the packages as libmamba does (transaction.cpp, log_json)."""
    import rattler

    found = await rattler.solve([rattler.Channel(name) for name in words.channel], words.specs)
    packages = [
        {"name": one.name.normalized, "version": str(one.version), "url": one.url, "sha256": one.sha256.hex()}
        for one in found
    ]
    print(json.dumps({"success": True, "dry_run": True, "actions": {"FETCH": packages, "LINK": packages}}))


def records(lock, cache):
    """Return what the packages of a lock say of themselves, with the lock's checksums, which rattler compares."""
    import rattler
    from rattler.package_streaming import extract

    found = []
    for url, digest in [line.split("#sha256:") for line in lock.splitlines() if line[:1] not in ("#", "@", "")]:
        channel, _subdir, file = url.rsplit("/", 2)
        with urllib.request.urlopen(url) as stream:
            (cache / file).write_bytes(stream.read())
        extract(cache / file, cache / "described" / file)
        index = cache / "described" / file / "info" / "index.json"
        record = rattler.PackageRecord.from_index_json(index, sha256=digest)
        found.append(rattler.RepoDataRecord(record, file, url, channel))
    return found


async def install(words):
    """Install the packages, and write the history at the end (libmamba, history.cpp)."""
    import rattler

    cache = Path(os.environ["CONDA_PKGS_DIRS"])
    cache.mkdir(parents=True, exist_ok=True)
    wanted = records(words.file.read_text(), cache)
    stop = [
        number for number, one in enumerate(wanted, 1) if one.name.normalized == os.environ.get("CONDA_STANDIN_STOP")
    ]
    for count in [*stop, len(wanted)]:
        await rattler.install(wanted[:count], words.prefix, cache_dir=cache / "rattler", show_progress=False)
        if stop:
            os.kill(os.getpid(), signal.SIGKILL)
    entry = ["==> 2026-01-01 00:00:00 <==", "# cmd: micromamba create", f"# conda version: {VERSION}"]
    entry += [f"+{one.url.rsplit('/', 1)[1]}" for one in wanted]
    with (words.prefix / "conda-meta" / "history").open("a") as stream:
        stream.write("".join(f"{line}\n" for line in entry))


def main():
    words, status = parser().parse_intermixed_args(), 0
    try:
        asyncio.run(solve(words) if words.dry_run else install(words))
    except Exception as error:
        status = f"critical libmamba {error}"
    leave(status)


def leave(status):
    """End without Python's own end, in which threads that rattler 0.28.0 leaves running crash now and then."""
    if status:
        print(status, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if status else 0)


main()
