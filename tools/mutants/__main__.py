# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.mutants [SUBJECT[/FILE] …]`: run mutmut over subjects of subjects.py; 1 where fewer than 90 % are killed."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .subjects import CHECKOUT, SUBJECTS, Subject

COLLECTION = "ansible_collections/allreduce/gpu"
WANTED = 90  # percent


def main() -> int:
    """Run each subject and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", default=list(SUBJECTS), help=f"{', '.join(SUBJECTS)}, or files of one: drift/kernels"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    failed = False
    for name, subject in chosen(args.subjects).items():
        place = CHECKOUT / ".cache" / "mutants" / name
        stage(place, subject)
        mutmut(place, "run", "--max-children", str(args.jobs))
        mutmut(place, "export-cicd-stats")
        found = json.loads((place / "mutants" / "mutmut-cicd-stats.json").read_text(encoding="utf-8"))
        percent = score(found)
        print(f"{name}: {percent:.1f} % of {found['total']} mutants killed, {found['survived']} survived")
        failed |= percent < WANTED
    if failed:
        print("The survivors: cd .cache/mutants/SUBJECT && mutmut results; mutmut show NAME.", file=sys.stderr)
    return int(failed)


def chosen(names: list[str]) -> dict[str, Subject]:
    """Return the named subjects; those with files have these only."""
    found: dict[str, Subject] = {}
    for name in names:
        subject, _slash, file = name.partition("/")
        if subject not in SUBJECTS:
            raise SystemExit(f"There is no subject {subject}; use one of {', '.join(SUBJECTS)}.")
        before = found.get(subject, dataclasses.replace(SUBJECTS[subject], only=() if file else SUBJECTS[subject].only))
        found[subject] = dataclasses.replace(before, only=(*before.only, f"{file}.py")) if file else SUBJECTS[subject]
    return found


def score(found: dict[str, int]) -> float:
    """Return the percentage that tests noticed: by failing, or by not ending; mutants without a test count as survivors."""
    noticed = found["killed"] + found["timeout"] + found.get("segfault", 0)
    return 100 * noticed / found["total"] if found["total"] else 0.0


def stage(place: Path, subject: Subject) -> None:
    """Copy the checkout to where its code has the name by which it is imported, as mutmut needs it, with mutmut's configuration."""
    shutil.rmtree(place, ignore_errors=True)
    tree = place / COLLECTION
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-co", "--exclude-standard"]
    for name in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        if (CHECKOUT / name).is_file() and not name.startswith(".collections"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, tree / name)
    (place / "pyproject.toml").write_text(configuration(subject), encoding="utf-8")


def configuration(subject: Subject) -> str:
    """Return the configuration that mutmut reads; every value is a list of texts or a truth value, which JSON writes as TOML does."""
    code, tests = f"{COLLECTION}/{subject.code}", f"{COLLECTION}/{subject.tests}"
    values = {
        "source_paths": [code],
        "only_mutate": [f"{code}/{one}" for one in subject.only],
        "also_copy": ["ansible_collections"],
        "pytest_add_cli_args": [
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not long",
            *(f"--ignore={tests}/{one}" for one in subject.ignored),
        ],
        "pytest_add_cli_args_test_selection": [
            *([f"{tests}/{one}" for one in subject.by] or [tests]),
            *(f"{COLLECTION}/{one}" for one in subject.also),
        ],
        "use_git_change_detection": False,
    }
    return "[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def mutmut(place: Path, *arguments: str) -> None:
    """Run mutmut where the subject lies."""
    subprocess.run([str(Path(sys.executable).with_name("mutmut")), *arguments], check=True, cwd=place)


if __name__ == "__main__":
    sys.exit(main())
