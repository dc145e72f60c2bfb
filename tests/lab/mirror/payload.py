# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stub package brings: what checks and other packages look at, in the places of the real one."""

from __future__ import annotations

from collections.abc import Callable

from . import container_toolkit, dcgm, stub_cuda, stub_driver, stub_kernel, stub_python
from .model import Package
from .stub import Maker, Payload

KINDS: dict[str, Callable[[Maker, Package, Payload], None]] = {
    **stub_driver.KINDS,
    **stub_kernel.KINDS,
    **stub_cuda.KINDS,
    **stub_python.KINDS,
    **dcgm.KINDS,
    **container_toolkit.KINDS,
}


class Builder(Maker):
    """Makes payloads."""

    def build(self, package: Package) -> Payload:
        payload = Payload()
        for kind in package.files:
            KINDS[kind](self, package, payload)
        return payload
