# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded output of uv 0.13 and pip 23, and the sentence a user gets for it."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.uv_messages import (
    CAUSES,
    explain,
    without_credentials,
)

LINKS = ["http://10.0.0.1:8000/"]
HINT = "set python_env_index_url, python_env_find_links or gpu_stack_request."
RECORDED = {
    "wheel not found": (
        "no_solution",
        "error: No solution found when resolving dependencies\n"
        "  cause: Because there is no version of torch==2.99.0 and main depends on torch==2.99.0, we can conclude that "
        "your requirements are unsatisfiable.\n",
        "X: no wheels fit (there is no version of torch==2.99.0 and main depends on torch==2.99.0); "
        f"looked in http://10.0.0.1:8000/; {HINT}",
    ),
    "no interpreter": (
        "no_interpreter",
        "error: No interpreter found for Python 3.14 in search path\n\n"
        "hint: A managed Python download is available for Python 3.14, but Python downloads are set to 'never'\n",
        "X: this host has no Python 3.14; install it from the distribution, or set gpu_stack_request.python to a version "
        "it has.",
    ),
    "disk full while installing": (
        "disk_full",
        "Resolved 11 packages in 0.89ms\n"
        "error: Failed to install: numpy-2.4.6.whl (numpy==2.4.6)\n  cause: Failed to copy to `/opt/x.so`\n"
        "  cause: failed to copy file from /a to /b: No space left on device (os error 28)\n",
        "X: the file system of /opt/allreduce or of the temporary directory is full; free some space and run again.",
    ),
    "hash mismatch": (
        "hash_mismatch",
        "error: Failed to download `numpy==2.4.6`\n  cause: Hash mismatch for `numpy==2.4.6`\n\n         Expected:\n"
        "           sha256:99\n\n         Computed:\n           sha256:89\n",
        "X: the file found for numpy==2.4.6 is not the one that was locked; repair the source (http://10.0.0.1:8000/), "
        "or solve anew with frameworks_relock=true.",
    ),
    "wheel directory down": (
        "unreachable",
        "error: Failed to read `--find-links` URL: http://10.0.0.1:8000/\n  cause: Request failed after 3 retries in 9.6s\n"
        "  cause: Failed to fetch: http://10.0.0.1:8000/\n  cause: tcp connect error\n"
        "  cause: Connection refused (os error 111)\n",
        "X: http://10.0.0.1:8000/ cannot be fetched (Connection refused (os error 111)); check proxy and network, or "
        + HINT,
    ),
    "unknown host": (
        "unreachable",
        "error: Failed to fetch: https://mia:secret@no-such-host.example/simple/numpy/\n  cause: dns error\n"
        "  cause: failed to lookup address information: Name or service not known\n",
        "X: https://no-such-host.example/simple/numpy/ cannot be fetched (failed to lookup address information: "
        "Name or service not known); check proxy and network, or " + HINT,
    ),
    "untrusted certificate": (
        "untrusted_certificate",
        "error: Failed to fetch: `https://index.example/simple/numpy/`\n"
        "  cause: invalid peer certificate: UnknownIssuer\n",
        "X: the certificate of http://10.0.0.1:8000/ is not trusted; add its authority with base_ca_certificates.",
    ),
    "pip finds nothing": (
        "package_not_found",
        "ERROR: Could not find a version that satisfies the requirement uv==0.13.9 (from versions: none)\n"
        "ERROR: No matching distribution found for uv==0.13.9\n",
        f"X: no wheel found for uv==0.13.9; looked in http://10.0.0.1:8000/; {HINT}",
    ),
    "pip rejects a hash": (
        "hash_mismatch",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    uv==0.13.9:\n",
        "X: a file found in http://10.0.0.1:8000/ does not have the expected SHA-256; repair that source.",
    ),
    "read-only": (
        "read_only",
        "error: failed to create directory `/opt/allreduce/envs/main`: Read-only file system (os error 30)\n",
        "X: /opt/allreduce lies on a read-only file system; mount it writable and run again.",
    ),
    "no venv": (
        "no_venv",
        "The virtual environment was not created successfully because ensurepip is not available.\n",
        "X: the distribution's venv package is missing; install python3-venv and run again.",
    ),
    "anything else": ("unknown", "warning: x\nerror: something new went wrong\n", "X: something new went wrong."),
    "nothing": ("unknown", "", "X: no output."),
}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_cause_and_sentence_of_a_recorded_failure(name):
    cause, output, sentence = RECORDED[name]
    found = explain(output, "X", find_links=LINKS, no_index=True)
    assert (found["cause"], found["text"]) == (cause, sentence)
    assert bool(found["remedy"]) == (cause != "unknown")
    assert sentence.endswith(f"; {found['remedy']}.") or cause == "unknown"


def test_every_cause_is_seen_here():
    assert {cause for cause, _output, _sentence in RECORDED.values()} == {one.code for one in CAUSES} | {"unknown"}


def test_all_places_that_were_looked_at_are_named():
    text = explain("No matching distribution found for a", "X", find_links=["/w"], wheel_index="https://cpu.example")
    assert "looked in /w, https://cpu.example, the default package index;" in text["text"]


def test_credentials_are_left_out():
    assert without_credentials("see https://user:pass@host/x and http://token@h") == "see https://host/x and http://h"
    found = explain("No matching distribution found for a", "X", index_url="https://u:secret@i.example")
    assert "secret" not in str(found)
