# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to NVML: opens the driver's library through pynvml and answers with plain values, None for unknown."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ctypes
import sys
from contextlib import contextmanager

from .archive import kept_bytecode
from .nvml_errors import ABSENT, ERRORS
from .problems import problem

PYNVML_DIRECTORY = "/opt/allreduce/lib"
DEFAULT_LIBRARY = "libnvidia-ml.so.1"
# Which part of a field's value counts, by nvmlValueType_t (nvml.h).
VALUES = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


def failure(error):
    """Return {``code``, ``reason``} of an NVMLError."""
    return {"code": ERRORS.get(error.value, "nvml_error"), "reason": str(error)}


def import_pynvml():
    """Import pynvml, also from where role base puts it; None where there is none."""
    if PYNVML_DIRECTORY not in sys.path:
        sys.path.append(PYNVML_DIRECTORY)
    try:
        with kept_bytecode("pynvml"):
            import pynvml
    except ImportError:
        return None
    return pynvml


class Nvml:
    """An initialised NVML. ``call`` gives None where there is no answer, and keeps why one that was due did not come."""

    def __init__(self, pynvml):
        self.pynvml = pynvml
        self.errors = {}

    def take_errors(self):
        """Return {function: code} of the calls since the last time."""
        errors, self.errors = self.errors, {}
        return errors

    def call(self, name, *arguments):
        """Return the result of ``nvml<name>(*arguments)``, text decoded; None on any NVML error, see take_errors."""
        try:
            value = getattr(self.pynvml, "nvml" + name)(*arguments)
        except AttributeError:
            return None
        except self.pynvml.NVMLError as error:
            code = ERRORS.get(error.value, "nvml_error")
            if code not in ABSENT:
                self.errors.setdefault(name, code)
            return None
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def attempt(self, name, *arguments):
        """Return (result, None), or (None, {``code``: one of ERRORS' or nvml_error, ``reason``: NVML's words})."""
        try:
            return getattr(self.pynvml, "nvml" + name)(*arguments), None
        except self.pynvml.NVMLError as error:
            return None, failure(error)
        except AttributeError:
            return None, {"code": "function_missing", "reason": "this pynvml has no nvml%s" % name}

    def fields(self, handle, wanted):
        """Return {(name, scope): number} of ``wanted`` pairs, in one call; ``name``: of NVML_<name>, ``scope``: a link, or 0.

        What is missing has no answer; where one was due, its error is kept by the field's name, see take_errors.
        """
        known = [(name, scope) for name, scope in wanted if self.constant(name) is not None]
        asked = [(self.constant(name), scope) for name, scope in known]
        found = {}
        for pair, value in zip(known, self.call("DeviceGetFieldValues", handle, asked) or [] if asked else []):
            failed = value.nvmlReturn  # pynvml's structures are slow to ask
            if failed == 0:
                found[pair] = getattr(value.value, VALUES.get(value.valueType, "ullVal"))
            elif ERRORS.get(failed) not in ABSENT:
                self.errors.setdefault(pair[0], ERRORS.get(failed, "nvml_error"))
        return found

    def constant(self, name):
        return getattr(self.pynvml, "NVML_" + name, None)


@contextmanager
def open_nvml(library=DEFAULT_LIBRARY, wrap=None):
    """Yield (Nvml, None), or (None, the problem why there is none). Shut NVML down afterwards.

    ``wrap``: what a recording puts in the place of pynvml. The problem's code is pynvml_missing, library_missing, or NVML's own with its ``reason``.
    """
    pynvml = import_pynvml()
    if pynvml is None:
        yield None, problem("pynvml_missing", directory=PYNVML_DIRECTORY)
        return
    try:
        pynvml.nvmlLib = ctypes.CDLL(library)
        pynvml._nvmlGetFunctionPointer_cache.clear()
    except OSError:
        yield None, problem("library_missing", library=library)
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        failed = failure(error)
        yield None, problem(failed["code"], reason=failed["reason"])
        return
    try:
        yield Nvml(wrap(pynvml) if wrap else pynvml), None
    finally:
        pynvml.nvmlShutdown()


def library_version(library=DEFAULT_LIBRARY):
    """Return the user-space driver's version (``12.535.261.03`` without its leading CUDA major), or None.

    NVML answers this without being initialised, so also when the loaded kernel module is of another version.
    """
    buffer = ctypes.create_string_buffer(81)
    try:
        if ctypes.CDLL(library).nvmlSystemGetNVMLVersion(buffer, ctypes.c_uint(80)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return buffer.value.decode("ascii", "replace").partition(".")[2] or None
