# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is refused with one sentence that says what to do."""

import dataclasses

import pytest

from tools.release.check import refusal
from tools.release.source import Source

GOOD = Source(
    commit="0123456789abcdef0123456789abcdef01234567", time=1_700_000_000, tags=("1.2.0",), changed=(),
    namespace="allreduce", name="gpu", version="1.2.0", description="", repository="https://example.org/gpu",
    released=("1.2.0", "1.1.0"), fragments=(),
)  # fmt: skip
NO_TAG = (
    "Commit 0123456789ab has no tag 1.2.0; set it with git tag --sign 1.2.0, or rehearse with make release DRY_RUN=1."
)


def test_a_tagged_clean_commit_with_its_changelog_is_released():
    assert refusal(GOOD) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"changed": ("README.md",)}, "The working tree differs from commit 0123456789ab (README.md); commit the changes or remove them."),
        ({"changed": ("a", "b", "c", "d", "e")}, "The working tree differs from commit 0123456789ab (a, b, c and 2 more); commit the changes or remove them."),
        ({"tags": ()}, NO_TAG),
        ({"tags": ("nightly",)}, NO_TAG),
        ({"tags": ("1.1.0",)}, "Tag 1.1.0 of commit 0123456789ab is not the version of galaxy.yml, 1.2.0; correct either of them."),
        ({"tags": ("v1.2.0",)}, "Tag v1.2.0 of commit 0123456789ab is not the version of galaxy.yml, 1.2.0; correct either of them."),
        ({"released": ("1.1.0",)}, "changelogs/changelog.yaml has no release 1.2.0, the version of galaxy.yml; "
         "run make changelog and commit what it writes."),
        ({"fragments": ("fix.yml",)}, "No release of the changelog has fix.yml of changelogs/fragments; run make changelog and commit what it writes."),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_in_one_sentence(changes, sentence):
    assert refusal(dataclasses.replace(GOOD, **changes)) == sentence


def test_several_tags_may_include_the_version():
    assert refusal(dataclasses.replace(GOOD, tags=("1.1.0", "1.2.0"))) is None


@pytest.mark.parametrize(
    "changes",
    [{"tags": ()}, {"tags": ("1.1.0",)}, {"fragments": ("fix.yml",)}, {"released": (), "fragments": ("fix.yml",)}],
)
def test_a_rehearsal_needs_no_tag_and_no_released_changelog(changes):
    assert refusal(dataclasses.replace(GOOD, **changes), rehearsal=True) is None


@pytest.mark.parametrize("changes", [{"changed": ("a",)}, {"released": ()}])
def test_a_rehearsal_needs_everything_else(changes):
    assert refusal(dataclasses.replace(GOOD, **changes), rehearsal=True)
