# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.site.build DIRECTORY`: the documentation site, of the Markdown pages and of what ansible-doc knows.

Runs in the environment of requirements-docs.txt: `make docs`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COLLECTION = "allreduce.gpu"
INDEX = (
    '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<title>allreduce.gpu</title><meta http-equiv="refresh" content="0; url=README.html">\n'
)
# A link to something that is not a page, such as a playbook.
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
# The navigation: (caption, patterns of pages in their order).
CONTENTS = (
    (
        "Operate",
        ("docs/day-2.md", "docs/troubleshooting.md", "docs/faults.md", "docs/health.md", "docs/runbooks/README.md"),
    ),
    (
        "Use",
        (
            "docs/cluster.md",
            "docs/supported.md",
            "docs/compare.md",
            "docs/stack.md",
            "docs/compatibility.md",
            "docs/training.md",
            "docs/benchmark.md",
            "docs/clouds.md",
            "docs/containers.md",
            "docs/slurm.md",
            "docs/migrating.md",
            "docs/reference-systems.md",
            "docs/distributions/*.md",
        ),
    ),
    ("Settings", ("docs/tuning.md", "docs/rdma.md", "docs/selinux.md", "docs/fapolicyd.md")),
    ("Roles", ("roles/*/README.md",)),
    ("Reference", ("collections/index.rst", "docs/glossary.md")),
    ("Develop", ("CONTRIBUTING.md", "docs/architecture.md", "docs/decisions/*.md", "docs/lab.md", "SECURITY.md")),
    ("Runbooks", ("docs/runbooks/[!R]*.md",)),
)


def pages(checkout: Path) -> list[Path]:
    """Return the Markdown pages of the site, relative to the checkout."""
    found = [*checkout.glob("*.md"), *checkout.glob("docs/**/*.md"), *checkout.glob("roles/*/README.md")]
    return sorted(path.relative_to(checkout) for path in found)


def linked(checkout: Path, page: Path) -> Iterable[Path]:
    """Yield the files that a page links to and that are not pages."""
    for target in LINK.findall((checkout / page).read_text(encoding="utf-8")):
        path = (checkout / page.parent / target).resolve()
        if path.is_file() and path.suffix != ".md":
            yield path.relative_to(checkout)


def in_order(source: Path, pattern: str) -> list[str]:
    """Return the pages of a pattern by name, with numbers as numbers: Rocky 8 comes before Rocky 10."""
    names = [path.relative_to(source).as_posix() for path in source.glob(pattern)]
    return sorted(names, key=lambda name: [int(one) if one.isdigit() else one for one in re.split(r"(\d+)", name)])


def navigation(source: Path) -> str:
    """Return the tables of contents for the front page; no page is without one."""
    parts = []
    for caption, patterns in CONTENTS:
        names = [one for pattern in patterns for one in in_order(source, pattern)]
        parts.append(
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
        )
    return "".join(parts)


def write_source(checkout: Path, source: Path) -> None:
    """Copy pages and what they link to where Sphinx looks for them."""
    shutil.rmtree(source, ignore_errors=True)
    for page in pages(checkout):
        for path in {page, *linked(checkout, page)}:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / path, source / path)
    here = checkout / "tools" / "site"
    shutil.copy2(here / "conf.py", source / "conf.py")
    shutil.copytree(here / "static", source / "static")


def describe_plugins(checkout: Path, source: Path) -> None:
    """Write a page for each plugin and role from its documentation."""
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(checkout / ".collections")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = ["collection", "--use-current", "--no-add-antsibull-docs-version", "--dest-dir", str(source), COLLECTION]
    program = Path(sys.executable).parent / "antsibull-docs"
    told = subprocess.run([program, *command], check=True, env=environment, stderr=subprocess.PIPE, text=True).stderr
    if "nonfatal_errors" in told:  # it writes a page that says so, and succeeds
        raise SystemExit(told)


def main() -> int:
    """Return Sphinx's exit status; a warning is an error."""
    parser = argparse.ArgumentParser(prog="python -m tools.site.build", description=__doc__)
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args().directory.resolve()
    source = directory / "source"
    write_source(CHECKOUT, source)
    describe_plugins(CHECKOUT, source)
    front = source / "README.md"
    front.write_text(front.read_text(encoding="utf-8") + navigation(source), encoding="utf-8")
    (directory / "html").mkdir(exist_ok=True)
    (directory / "html" / "index.html").write_text(INDEX, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, directory / "html"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
