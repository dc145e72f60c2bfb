# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a GPU's memory: uncorrected errors, and what was or has to be taken out of use."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer, number_of

PAGES = 64  # that a GPU can retire: https://docs.nvidia.com/deploy/dynamic-page-retirement
ROWS = 512  # that a GPU can remap: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/row-remapping.html


def memory(gpus, limits):
    """Judge uncorrected errors, and row remapping (Ampere and newer) or page retirement (older), of GPUs with ECC."""
    guarded = [(gpu, counters) for gpu, counters in gpus if gpu["ecc"]["current"] and not gpu.get("vgpu")]
    old = [(gpu, counters) for gpu, counters in guarded if counters.get("retired_pages_pending") is not None]
    new = [pair for pair in guarded if pair[1].get("remapped_rows") or row_errors(pair[1])]
    modes = [no_answer("ecc_errors", "an answer", gpu_label(gpu), gpu, "DeviceGetEccMode") for gpu, dummy in gpus]
    errors = [one for one in modes if one]
    for gpu, counters in guarded:
        errors += [error_finding(gpu_label(gpu), counters, limits), flood(gpu_label(gpu), counters, limits)]
    rows = [found for gpu, counters in new for found in row_findings(gpu_label(gpu), counters, limits)]
    pages = [found for gpu, counters in guarded for found in page_findings(gpu_label(gpu), counters)]
    tolerated = "at most %d uncorrected" % limits["max_uncorrected_errors"]
    found = [("ecc_errors", guarded, tolerated, errors), ("row_remapping", new, "nothing pending", rows)]
    found.append(("page_retirement", old, "nothing pending", pages))
    return [
        judged(check, expected, "%s on %s" % (expected, number_of(those)), findings)
        for check, those, expected, findings in found
        if those or any(findings)
    ]


def row_errors(counters):
    """Return the error with which NVML did not tell of rows of a GPU that does not retire pages; None where it has no rows to remap."""
    if counters.get("retired_pages_pending") is not None:
        return None
    return (counters.get("nvml_errors") or {}).get("DeviceGetRemappedRows")


def page_findings(name, counters):
    check, expected, pages = "page_retirement", "nothing pending", counters.get("retired_pages")
    functions = ("DeviceGetRetiredPagesPendingStatus", "DeviceGetRetiredPages")
    found = [no_answer(check, expected, name, counters, function) for function in functions]
    if counters.get("retired_pages_pending"):
        found.append(fault(check, "pending", expected, "pending", name))
    if pages is not None and pages >= PAGES:
        found.append(fault(check, "all", "fewer than %d pages" % PAGES, "%d pages retired" % pages, name))
    return found


def error_finding(name, counters, limits):
    """Judge uncorrected errors; a GPU whose ECC is on counts them, whatever NVML says that it supports."""
    expected, errors = "at most %d uncorrected" % limits["max_uncorrected_errors"], counters.get("uncorrected_errors")
    if errors is None:
        told = no_answer("ecc_errors", expected, name, counters, "DeviceGetTotalEccErrors")
        return told or fault("ecc_errors", "uncounted", expected, None, name)
    if errors > limits["max_uncorrected_errors"]:
        return fault("ecc_errors", "uncorrected", expected, errors, name)
    return None


def flood(name, counters, limits):
    """Judge corrected errors; a GPU that does not count them has told so of the others, too."""
    errors, most = counters.get("corrected_errors"), limits["max_corrected_errors"]
    if (errors or 0) > most:
        return fault("ecc_errors", "corrected", "at most %d corrected" % most, "%d corrected" % errors, name)
    return None


def row_findings(name, counters, limits):
    check, rows, most = "row_remapping", counters.get("remapped_rows"), limits["max_remapped_rows"]
    if rows is None:
        return [no_answer(check, "nothing pending", name, counters, "DeviceGetRemappedRows")]
    found = []
    if rows.get("failed"):
        found.append(fault(check, "failed", "spare rows", "remapping failed", name))
    if rows.get("pending"):
        found.append(fault(check, "pending", "nothing pending", "pending", name))
    remapped = rows.get("correctable", 0) + rows.get("uncorrectable", 0)
    if remapped >= ROWS:
        found.append(fault(check, "all", "fewer than %d rows" % ROWS, "%d rows remapped" % remapped, name))
    elif most is not None and rows.get("uncorrectable", 0) > most:
        text = "%d rows remapped" % rows["uncorrectable"]
        found.append(fault(check, "many", "at most %d rows" % most, text, name))
    return found
