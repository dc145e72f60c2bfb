# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links between pages lead to files that exist and to headings that are there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md"), *ROOT.glob("examples/*.md")}
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def links(text: str) -> list[str]:
    """Return the targets of Markdown's links that are not addresses, outside of code."""
    plain = re.sub(r"`[^`\n]*`", "`", FENCE.sub("", text))
    return [target for target in LINK.findall(plain) if not re.match(r"[a-z]+:", target)]


def slugs(text: str) -> Iterator[str]:
    """Yield the anchors that GitHub and MyST give to headings."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} (.*?) *#*$", FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        yield f"{slug}-{seen[slug]}" if seen[slug] else slug


@functools.cache
def anchors(page: Path) -> set[str]:
    return set(slugs(page.read_text(encoding="utf-8")))


def broken(page: Path, target: str) -> str | None:
    """Return why a link leads nowhere; None where it does not."""
    name, _mark, anchor = unquote(target).partition("#")
    path = (page.parent / name).resolve() if name else page
    if ROOT not in path.parents and path != ROOT:
        return f"{target}: outside of the repository"
    if not path.exists():
        return f"{target}: no such file"
    if anchor and (path.suffix != ".md" or anchor not in anchors(path)):
        return f"{target}: no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    found = [broken(page, target) for target in links(page.read_text(encoding="utf-8"))]
    assert [one for one in found if one] == []


PLACES = {
    "role": "roles/{}/meta/argument_specs.yml",
    "filter": "plugins/filter/{}.py",
    "module": "plugins/modules/{}.py",
}
REFERENCE = re.compile(r"\b(?:P\(allreduce\.gpu\.(\w+)#(\w+)\)|M\(allreduce\.gpu\.(\w+)\))")
DOCUMENTED = sorted(
    {*ROOT.glob("plugins/*/*.py"), *ROOT.glob("plugins/*/*.yml"), *ROOT.glob("roles/*/meta/argument_specs.yml")}
)


@pytest.mark.parametrize("file", DOCUMENTED, ids=lambda file: str(file.relative_to(ROOT)))
def test_plugins_that_are_referred_to_exist(file):
    found = REFERENCE.findall(file.read_text(encoding="utf-8"))
    named = [(kind or "module", name or module) for name, kind, module in found]
    assert [one for one in named if not (ROOT / PLACES[one[0]].format(one[1])).exists()] == []


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[a](b.md) and [c](https://example.org/d)", ["b.md"]),
        ("`[a](b.md)`\n```\n[c](d.md)\n```\n", []),
        ('[a](b.md#c-d "title")', ["b.md#c-d"]),
        ("![picture](a.png)", ["a.png"]),
    ],
)
def test_links(text, targets):
    assert links(text) == targets


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("# Day 2: upgrade, replace", "day-2-upgrade-replace"),
        ("## `plan` and [site](x.md)", "plan-and-site"),
        ("## When a check fails #", "when-a-check-fails"),
    ],
)
def test_slugs(heading, slug):
    assert list(slugs(heading)) == [slug]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("README.md#two-commands", None),
        ("README.md#nothing", "no such heading"),
        ("docs/nothing.md", "no such file"),
        ("../elsewhere.md", "outside of the repository"),
        ("docs", None),
    ],
)
def test_broken(target, why):
    found = broken(ROOT / "CONTRIBUTING.md", target)
    assert found == (why and f"{target}: {why}")
