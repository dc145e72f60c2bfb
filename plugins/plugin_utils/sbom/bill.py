# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bill of materials in CycloneDX 1.6 (ECMA-424). The only door to cyclonedx-python-lib: its classes know the schema."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from ..documents.observed import Observed
from ..documents.parsing import parse
from ..documents.stack import Stack
from ..preflight.controller import SBOM_LIBRARY
from ..problems.problem import Problem, ProblemError
from .parts import Part, parts

try:
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    _CYCLONEDX = True
except ImportError:
    _CYCLONEDX = False

# Names of the serial numbers: equal bills have equal ones.
NAMESPACE = uuid.UUID("6f0f1d0e-6a5b-5d0c-9a53-0f6f3f4a7c11")
GROUP = "allreduce:part_of"


def bill(stack: Mapping, observed: Mapping | None = None, name: str = "node") -> dict[str, Any]:
    """Return the bill of materials of a node as a document for JSON; the same node gives the same document.

    stack: fact gpu_stack; observed: fact gpu_node_state, whose versions and packages are taken then; name: what the bill is of.
    ProblemError (sbom_no_library) on a controller without cyclonedx-python-lib.
    """
    if not _CYCLONEDX:
        raise ProblemError(Problem("sbom_no_library", SBOM_LIBRARY))
    planned = parse(Stack, stack)
    found = parts(planned, parse(Observed, observed) if observed else None)
    system = Component(
        name=planned.os.id, version=planned.os.version, type=ComponentType.OPERATING_SYSTEM, bom_ref="os"
    )
    document = Bom(components=[system, *_components(found)])
    document.metadata.component = Component(name=name, type=ComponentType.DEVICE, bom_ref="node")
    document.register_dependency(document.metadata.component, document.components)
    return rendered(document)


def rendered(document: Bom) -> dict[str, Any]:
    """Return a bill of materials as a document for JSON: without the moment it was made, and with a serial number of its content."""
    text = json.loads(JsonV1Dot6(document).output_as_string())
    del text["metadata"]["timestamp"], text["serialNumber"]  # of this moment; both are optional
    content = json.dumps(text, sort_keys=True)
    return {**text, "serialNumber": uuid.uuid5(NAMESPACE, content).urn}


def _components(found: Iterable[Part]) -> list[Component]:
    """Return a component for each package; one that is there for several carries all of them."""
    groups: dict[str, list[str]] = {}
    urls: dict[str, tuple[Part, PackageURL]] = {}
    for part in found:
        url = PackageURL(part.kind, _namespace(part), part.name, part.version, dict(part.qualifiers))
        urls[str(url)] = part, url
        groups.setdefault(str(url), []).append(part.group)
    return [
        Component(
            name=part.name,
            version=part.version,
            type=ComponentType.LIBRARY,
            purl=url,
            bom_ref=text,
            properties=[Property(name=GROUP, value=group) for group in dict.fromkeys(groups[text])],
        )
        for text, (part, url) in urls.items()
    ]


def _namespace(part: Part) -> str | None:
    """Return the distribution, which the types deb and rpm want."""
    distribution = dict(part.qualifiers).get("distro")
    return distribution.partition("-")[0] if distribution else None
