# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.dkms: build the kernel module that drift names, and measure."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ..plugin_utils.documents.observed import Observed
from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.documents.stack import Driver
from ..plugin_utils.drift.builds import Builds, missing_builds
from ..plugin_utils.node.action import StepFailed
from ..plugin_utils.node.diffs import difference
from ..plugin_utils.packages.action import PackageAction


class ActionModule(PackageAction):
    """Builds the driver's module for the kernels that must have it, and returns the node's new state."""

    def act(self) -> dict[str, Any]:
        self.validate_argument_spec({})
        try:
            driver = self.desired().stack.driver
            missing = missing_builds(driver, self.observed()) if driver else None
        except DocumentError as error:
            raise AnsibleActionFail(f"The kernel module of {self.host}: {error}.") from None
        if driver is None or missing is None:
            return {"skipped": True, "skip_reason": f"The stack of {self.host} has no kernel module to build."}
        if self._task.check_mode:
            return self._predict(missing)
        if not missing.possible:
            raise StepFailed(_no_headers(missing))
        if missing.kernels:
            self._build(driver, missing)
        self._warnings += [_unbuildable(kernel, self.host) for kernel in missing.without_headers]
        return {"kernels": list(missing.kernels)}

    def what_failed(self) -> str:
        return "The driver's kernel module could not be built"

    def _predict(self, missing: Builds) -> dict[str, Any]:
        """Predict the builds of a module that DKMS knows; that of a package to be installed comes with it."""
        kernels = missing.kernels if missing.version else ()
        lines = [f"{missing.module} {missing.version} for {kernel}" for kernel in kernels]
        self.note_change(bool(kernels), difference("DKMS", [], lines))
        return {"kernels": list(kernels)}

    def _build(self, driver: Driver, missing: Builds) -> None:
        """Build the version that the packages brought.

        ``dkms autoinstall`` takes the newest version that is not installed for a kernel, which may be older than the one
        that is; ``--force`` lets the module replace another version.
        """
        if missing.version is None:
            raise StepFailed(_not_built(missing, self.observed()))
        # An interrupted run may have left this node waiting for the module of another one.
        self.execute("allreduce.gpu.kernel_module_archive", {"name": missing.module, "state": "absent"}, changes=False)
        for kernel in missing.kernels:
            argv = ["dkms", "install", "--force", "-m", missing.module, "-v", missing.version, "-k", kernel]
            self.execute("ansible.builtin.command", {"argv": argv})
        self.measure()
        left = missing_builds(driver, self.observed())
        if left and left.kernels:
            raise StepFailed(_not_built(left, self.observed()))


def _no_headers(missing: Builds) -> dict[str, str]:
    remedy = "set base_kernel_headers to true and run role base"
    text = f"no headers of kernel {', '.join(missing.without_headers)} are installed: {remedy}"
    return {"cause": "no_kernel_headers", "remedy": remedy, "msg": text}


def _not_built(missing: Builds, observed: Observed) -> dict[str, str]:
    known = ", ".join(sorted({f"{build.module} {build.version}" for build in observed.dkms or ()})) or "none"
    wanted = f"{missing.module} {missing.version or 'of the planned version'}"
    text = f"DKMS has no module {wanted} for kernel {', '.join(missing.kernels)}; it has {known}"
    return {"cause": "module_missing", "remedy": "", "msg": text}


def _unbuildable(kernel: str, host: str) -> str:
    return (
        f"Kernel {kernel} of {host} gets no driver module: its headers are not installed. Boot the kernel that has them, "
        "or set base_kernel_headers to true and run role base."
    )
