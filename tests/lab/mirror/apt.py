# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt repositories: NVIDIA's, which are one flat directory, and an archive with dists/ and pool/."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from . import deb, keys
from .catalogue import repositories
from .model import Package, table
from .payload import Builder

VARIANTS = ".lab"  # directory of the indexes that the server gives out when it misbehaves
Entries = list[tuple[Package, str]]  # with the paragraph of the index


def write_packages(packages: Iterable[Package], builder: Builder, place: Path, folder: str) -> Entries:
    """Write the .debs into PLACE/FOLDER; what the index says of them."""
    (place / folder).mkdir(parents=True, exist_ok=True)
    entries = []
    for package in packages:
        content = deb.write(package, builder.build(package))
        filename = f"{folder}/{package.name}_{package.version.replace(':', '%3a')}_{package.architecture}.deb"
        (place / filename).write_bytes(content)
        entries.append((package, deb.index_entry(package, filename.removeprefix("./"), content)))
    return entries


def write_index(entries: Entries, fields: dict, place: Path, component: str, signature: keys.Signer) -> None:
    """Packages, Packages.gz in PLACE/COMPONENT; Release, InRelease and Release.gpg in PLACE."""
    text = "\n".join(entry for dummy, entry in entries)
    files = {"Packages": text.encode(), "Packages.gz": gzip.compress(text.encode(), 6, mtime=0)}
    target = place / component
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (target / name).write_bytes(content)
    prefix = "" if component == "." else f"{component}/"
    release = "".join(f"{key}: {value}\n" for key, value in fields.items())
    for title, kind in (("MD5Sum", "md5"), ("SHA1", "sha1"), ("SHA256", "sha256")):
        lines = (f" {hashlib.new(kind, c).hexdigest()} {len(c):>16} {prefix}{name}\n" for name, c in files.items())
        release += f"{title}:\n" + "".join(lines)
    (place / "Release").write_text(release, encoding="utf-8")
    (place / "InRelease").write_text(signature.inline(release), encoding="utf-8")
    (place / "Release.gpg").write_text(signature.detached(release), encoding="utf-8")


def _date(moment: datetime) -> str:
    return moment.strftime("%a, %d %b %Y %H:%M:%S UTC")


def build_nvidia(slug: str, packages: list[Package], builder: Builder, place: Path, key_place: Path) -> None:
    """Build one of NVIDIA's repositories, with the indexes of its faults."""
    row, now = repositories()[slug], datetime.now(UTC)
    entries = write_packages(packages, builder, place, ".")
    fields = {**table("repositories")["release"], "Date": _date(now)}
    old = {**fields, "Date": _date(now - timedelta(days=60)), "Valid-Until": _date(now - timedelta(days=30))}
    with keys.signer(key_place, "lab") as signature:
        write_index(entries, fields, place, ".", signature)
        write_index(entries, old, place / VARIANTS / "expired", ".", signature)
        write_index(_lagging(entries), fields, place / VARIANTS / "lagging", ".", signature)
    with keys.signer(key_place, "unknown") as signature:
        write_index(entries, fields, place / VARIANTS / "unknown-key", ".", signature)
    public = (key_place / "lab.pub").read_text(encoding="utf-8")
    (place / row["key"]).write_text(public, encoding="utf-8")
    (place / VARIANTS / "sha1-key").mkdir()
    sha1 = (key_place / "sha1.pub").read_text(encoding="utf-8")
    (place / VARIANTS / "sha1-key" / row["key"]).write_text(sha1, encoding="utf-8")
    if row["pin"]:
        (place / f"cuda-{slug}.pin").write_text(table("repositories")["pin"], encoding="utf-8")


def _lagging(entries: Entries) -> Entries:
    """Return packages of which the newest fabric manager of each branch is missing, as in the days after a driver's release."""
    newest = {}
    for package, _dummy in entries:
        if "fabricmanager" in package.name:
            newest[package.upstream.partition(".")[0]] = package.upstream
    return [
        (package, entry)
        for package, entry in entries
        if "fabricmanager" not in package.name or package.upstream not in newest.values()
    ]


UBUNTU = {"focal": "20.04", "jammy": "22.04", "noble": "24.04"}


def build_archive(suite: str, packages: list[Package], builder: Builder, place: Path, key_place: Path) -> None:
    """Build the stand-in for Ubuntu's archive: the suite's -updates with component restricted."""
    entries = write_packages(packages, builder, place, f"pool/restricted/{suite}")
    fields = {
        "Origin": "Ubuntu",
        "Label": "Ubuntu",
        "Suite": f"{suite}-updates",
        "Version": UBUNTU[suite],
        "Codename": suite,
        "Date": _date(datetime.now(UTC)),
        "Architectures": "amd64",
        "Components": "restricted",
    }
    with keys.signer(key_place, "archive") as signature:
        write_index(entries, fields, place / "dists" / f"{suite}-updates", "restricted/binary-amd64", signature)
