# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.release`: the archive of the tagged commit with checksums, bill of materials, provenance and signatures."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / ".collections"))

from tools.release import archive, signature  # noqa: E402 (needs the line above)
from tools.release.bill import bill  # noqa: E402
from tools.release.check import refusal  # noqa: E402
from tools.release.provenance import provenance  # noqa: E402
from tools.release.source import Source, read  # noqa: E402

# What the bytes of the archive depend on, besides the commit.
TOOLS = ("ansible-core", "distlib")


def main() -> int:
    """Write the release; return 1 where it is refused."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="rehearse on a commit without a tag; write to dist/rehearsal"
    )
    parser.add_argument("--key", default="", help="of GnuPG, to sign with (default: no signatures)")
    parser.add_argument("--builder", default="", help="URI of who builds (default: the recipe in the repository)")
    args = parser.parse_args()
    source = read(CHECKOUT)
    reason = refusal(source, rehearsal=args.dry_run) or signature.refusal(args.key)
    if reason:
        print(reason, file=sys.stderr)
        return 1
    directory = CHECKOUT / "dist" / ("rehearsal" if args.dry_run else source.label)
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    write(source, directory, args.builder or f"{source.repository}/blob/main/CONTRIBUTING.md#make-a-release", args.key)
    for path in sorted(directory.iterdir()):
        print(path.relative_to(CHECKOUT))
    return 0


def write(source: Source, directory: Path, builder: str, key: str) -> None:
    """Write the files of the release."""
    built = archive.build(CHECKOUT, source, directory)
    requirements = (CHECKOUT / "requirements.txt").read_text(encoding="utf-8")
    _json(directory / f"{source.label}.cdx.json", bill(source, digest(built), requirements))
    tools = {"python": platform.python_version(), **{name: version(name) for name in TOOLS}}
    stated = {path.name: digest(path) for path in sorted(directory.iterdir())}
    _json(directory / f"{source.label}.provenance.json", provenance(source, stated, builder, tools))
    if key:
        signature.sign(archive.manifest(built), key, directory / "MANIFEST.json.asc")
    sums = directory / "SHA256SUMS"
    sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in sorted(directory.iterdir())), encoding="ascii")
    if key:
        signature.sign(sums.read_bytes(), key, directory / "SHA256SUMS.asc")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
