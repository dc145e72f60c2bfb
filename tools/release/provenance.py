# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State how an archive was built: an in-toto Statement v1 with SLSA Provenance v1 (slsa.dev/spec/v1.0/provenance). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .source import Source

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
# The document that a build type wants: how to build this again.
RECIPE = "CONTRIBUTING.md#make-a-release"


def provenance(source: Source, digests: Mapping[str, str], builder: str, tools: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement as a document for JSON.

    digests: SHA-256 of each file, by its name; builder: a URI of who built it; tools: versions of the programs that did
    """
    reference = f"refs/tags/{source.version}" if source.version in source.tags else source.commit
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source.repository}/blob/{source.commit}/{RECIPE}",
                "externalParameters": {"repository": source.repository, "ref": reference},
                "resolvedDependencies": [
                    {"uri": f"git+{source.repository}@{reference}", "digest": {"gitCommit": source.commit}},
                ],
            },
            "runDetails": {"builder": {"id": builder, "version": dict(tools)}},
        },
    }
