# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a release consists of, read with the programs and types of those who will read it."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from packaging.requirements import Requirement

from tools.release.source import git

from .conftest import CHECKOUT, checkout, commit, run

ARCHIVE, BILL, PROVENANCE = (f"allreduce-gpu-0.1.0.{end}" for end in ("tar.gz", "cdx.json", "provenance.json"))


def test_the_files_of_a_release(released):
    assert sorted(released.files) == sorted(
        [ARCHIVE, BILL, PROVENANCE, "MANIFEST.json.asc", "SHA256SUMS", "SHA256SUMS.asc"]
    )
    assert released.said.split() == [f"dist/allreduce-gpu-0.1.0/{name}" for name in sorted(released.files)]


def test_the_release_notes(released):
    """They list what users may call, and describe every role."""
    with tarfile.open(released.files[ARCHIVE]) as opened:
        notes = opened.extractfile("CHANGELOG.rst").read().decode()
    assert "\nv0.1.0\n======\n" in notes
    listed = set(re.findall(r"^- allreduce\.gpu\.(\w+) - ", notes, re.MULTILINE))
    kinds = ("modules", "filter", "lookup", "callback")
    assert listed == {path.stem for kind in kinds for path in CHECKOUT.glob(f"plugins/{kind}/[!_]*.py")}
    described = set(re.findall(r"^- role (\w+) - ", notes, re.MULTILINE))
    assert described == {path.name for path in CHECKOUT.glob("roles/*")}


def test_a_rehearsal_releases_the_fragments_in_its_copy(tmp_path):
    """On a commit whose changelog has no release of its version."""
    copy = tmp_path / "copy"
    checkout(copy)
    commit(copy)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    run(sys.executable, "-m", "tools.release", "--dry-run", cwd=copy, env=environment)
    with tarfile.open(copy / "dist" / "rehearsal" / ARCHIVE) as opened:
        assert "\nv0.1.0\n" in opened.extractfile("CHANGELOG.rst").read().decode()
    assert git(copy, "status", "--porcelain") == ""


def test_another_build_gives_the_same_bytes(released, tmp_path):
    """In another directory, with other times, under another umask."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(released.copy), str(clone)], check=True, umask=0o077)
    (clone / "README.md").touch()
    env = {**released.env, "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    subprocess.run([sys.executable, "-m", "tools.release"], cwd=clone, env=env, check=True, umask=0o077)
    directory = clone / "dist" / "allreduce-gpu-0.1.0"
    assert sorted(os.listdir(directory)) == sorted([ARCHIVE, BILL, PROVENANCE, "SHA256SUMS"]), (
        "nothing is signed without a key"
    )
    for name in (ARCHIVE, BILL, PROVENANCE):
        assert (directory / name).read_bytes() == released.files[name].read_bytes(), name


def test_checksums_and_their_signature(released, gnupg):
    directory = released.files["SHA256SUMS"].parent
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=directory, env=gnupg.env)
    named = {line.split()[1] for line in released.files["SHA256SUMS"].read_text().splitlines()}
    assert named == set(released.files) - {"SHA256SUMS", "SHA256SUMS.asc"}
    run("gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS", cwd=directory, env=gnupg.env)


def test_the_bill_of_materials(released):
    text = released.files[BILL].read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    collection = bill["metadata"]["component"]
    digest = hashlib.sha256(released.files[ARCHIVE].read_bytes()).hexdigest()
    assert collection["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert collection["version"] == "0.1.0"
    pinned = {one["name"]: one["version"] for one in bill["components"]}
    wanted = [line for line in (CHECKOUT / "requirements.in").read_text().splitlines() if not line.startswith("#")]
    for one in map(Requirement, (line.partition("#")[0] for line in wanted)):
        assert one.specifier.contains(pinned[one.name]), one
    collected = next(one for one in bill["dependencies"] if one["ref"] == "collection")
    assert sorted(collected["dependsOn"]) == sorted(one["bom-ref"] for one in bill["components"])


def test_the_provenance(released):
    document = json.loads(released.files[PROVENANCE].read_text())
    message = json_format.ParseDict({**document, "type": document.pop("_type")}, StatementMessage())
    statement = Statement.copy_from_pb(message)
    statement.validate()
    predicate = json_format.ParseDict(document["predicate"], Provenance())
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    assert predicate.build_definition.resolved_dependencies[0].digest == {"gitCommit": released.commit}
    assert predicate.build_definition.external_parameters["ref"] == "refs/tags/0.1.0"
    assert predicate.build_definition.build_type and predicate.run_details.builder.id
    assert predicate.run_details.builder.version["ansible-core"]
    subjects = {one.name: one.digest["sha256"] for one in message.subject}
    assert subjects == {name: hashlib.sha256(released.files[name].read_bytes()).hexdigest() for name in (ARCHIVE, BILL)}


def test_refusals_of_a_real_checkout(released, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--no-tags", str(released.copy), str(clone))
    command = (sys.executable, "-m", "tools.release")
    untagged = run(*command, cwd=clone, env=released.env, check=False)
    assert (untagged.returncode, untagged.stdout) == (1, "")
    assert untagged.stderr.startswith(f"Commit {released.commit[:12]} has no tag 0.1.0;")
    unknown = run(*command, "--dry-run", "--key", "nobody@example.org", cwd=clone, env=released.env, check=False)
    assert unknown.stderr.startswith("GnuPG has no secret key nobody@example.org;")
    (clone / "new.yml").write_text("---\n", encoding="utf-8")
    dirty = run(*command, "--dry-run", cwd=clone, env=released.env, check=False)
    assert (
        dirty.stderr
        == f"The working tree differs from commit {released.commit[:12]} (new.yml); commit the changes or remove them.\n"
    )
    assert not (clone / "dist").exists()
