# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role pcie, and refuse invalid values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...problems.problem import Problem

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {"pcie_state": "absent", "pcie_acs_redirect": "keep", "pcie_max_read_request": 0}
# Of PCI Express; 0 leaves it alone.
READ_REQUESTS = (0, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True)
class Request:
    """clear_redirect: end redirection by ACS between GPUs and adapters; read_request: bytes for adapters, 0 leaves them."""

    present: bool = False
    clear_redirect: bool = False
    read_request: int = 0

    @property
    def asks(self) -> bool:
        """Return True if anything is to be changed."""
        return self.present and (self.clear_redirect or self.read_request != 0)


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of the variables; those that are not set have their role's default."""
    given = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    return Request(
        present=given["pcie_state"] == "present",
        clear_redirect=given["pcie_acs_redirect"] == "clear",
        read_request=int(given["pcie_max_read_request"]),
    )


def problems(wanted: Request) -> Iterator[Problem]:
    """Yield the problems of values that are not valid; no fact of a node is needed for it."""
    if wanted.read_request not in READ_REQUESTS:
        yield Problem("pcie_no_size", str(wanted.read_request), {"sizes": list(READ_REQUESTS)})
