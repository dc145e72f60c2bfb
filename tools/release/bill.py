# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the bill of materials of the collection: what its archive needs on a controller, in pinned versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.sbom.bill import rendered
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from packageurl import PackageURL

from .source import Source

LICENCE = "GPL-3.0-or-later"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def bill(source: Source, digest: str, requirements: str) -> dict[str, Any]:
    """Return the bill of materials as a document for JSON; the same release gives the same document.

    digest: SHA-256 of the archive; requirements: text of requirements.txt
    """
    document = Bom(components=list(_packages(requirements)))
    document.metadata.component = _collection(source, digest)
    document.register_dependency(document.metadata.component, document.components)
    return rendered(document)


def _collection(source: Source, digest: str) -> Component:
    address = {"vcs_url": f"git+{source.repository}@{source.commit}"}
    url = PackageURL(
        "generic", source.namespace, source.name, source.version, address
    )  # Ansible has no type of its own
    return Component(
        name=f"{source.namespace}.{source.name}",
        version=source.version,
        description=source.description,
        type=ComponentType.LIBRARY,
        licenses=[DisjunctiveLicense(id=LICENCE)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(source.repository))],
        purl=url,
        bom_ref="collection",
    )


def _packages(requirements: str) -> Iterator[Component]:
    for name, version in PINNED.findall(requirements):
        url = PackageURL("pypi", None, name, version)
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, purl=url, bom_ref=str(url))
