# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables themselves: schema, order, no gaps, every reference and source known."""

from __future__ import annotations

import json

import jsonschema
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import RULES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import DIRECTORY, load, read_yaml
from packaging.version import Version

SCHEMA = json.loads((DIRECTORY / "schema.json").read_text(encoding="utf-8"))
SUBJECTS = sorted({path.stem for path in DIRECTORY.glob("*.yml")} - {"sources", "version", "profiles"})
RAW = {name: read_yaml(DIRECTORY / f"{name}.yml") for name in SUBJECTS}
TABLES = load()
# Of several tables; one that only its own table names stands there.
SOURCES = set(TABLES.subjects["sources"]["sources"])
VERSIONED = ("ansible_core", "cuda", "horovod", "tensorflow", "torch")


def rows(subject):
    return RAW[subject]["rows"]


def validator(subject):
    schema = {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{subject}"}
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("subject", sorted(set(SUBJECTS) & set(SCHEMA["$defs"])))
def test_rows_match_the_schema(subject):
    """A table that is not in schema.json has the type of its component's rows alone: test_rows.py."""
    check = validator(subject)
    problems = [f"{row}: {error.message}" for row in rows(subject) for error in check.iter_errors(row)]
    assert not problems


@pytest.mark.parametrize(
    "claim",
    [
        {"proof": "real"},
        {"scenario": "ubuntu1804"},
        {"proof": "none", "scenario": "ubuntu1804"},
        {"proof": "yes"},
    ],
    ids=str,
)
def test_a_proof_needs_a_scenario_and_a_scenario_is_a_proof(claim):
    row = next(row for row in rows("distros") if row["scenario"] is None and "like" not in row)
    assert list(validator("distros").iter_errors({**row, **claim})) != []


@pytest.mark.parametrize("column", ["proof", "scenario"])
def test_no_distribution_inherits_its_proof(column):
    for row in rows("distros"):
        lacking = {name: value for name, value in row.items() if name != column}
        assert list(validator("distros").iter_errors(lacking)) != []


def test_every_distribution_has_a_name():
    assert {row["id"] for row in rows("distros")} == set(RAW["distros"]["names"])


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_source_is_known(subject):
    known = SOURCES | set(RAW[subject].get("sources", ()))
    assert {source for row in rows(subject) for source in row["sources"]} <= known


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_source_of_all_tables_is_not_defined_again_in_one(subject):
    assert SOURCES.isdisjoint(RAW[subject].get("sources", ()))


def test_every_listed_source_is_used():
    by_rows = {source for subject in SUBJECTS for row in rows(subject) for source in row["sources"]}
    by_rows |= {source for step in RAW["driver_packages"]["installer_options"] for source in step["sources"]}
    by_rules = {source for rule in RULES for source in rule.sources}
    known = SOURCES.union(*(RAW[subject].get("sources", ()) for subject in SUBJECTS))
    assert known == by_rows | by_rules


@pytest.mark.parametrize("subject", SUBJECTS)
def test_unverified_marks_name_columns_of_their_row(subject):
    for row in rows(subject):
        assert set(row.get("unverified", ())) <= set(row), row
        for build in row["builds"] if subject == "torch" else ():
            assert set(build.get("unverified", ())) <= set(build), build


@pytest.mark.parametrize("subject", VERSIONED)
def test_versions_rise(subject):
    """A minor of TensorFlow may have several rows, for other Pythons: there the releases rise."""
    versions = [Version(row.get("releases", [row["version"]])[0]) for row in rows(subject)]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("subject", ["cudnn", "nccl"])
def test_library_builds_rise(subject):
    keys = [(Version(row["version"]), Version(row["cuda"])) for row in rows(subject)]
    assert keys == sorted(set(keys))


def test_wheels_of_libraries_are_those_that_pytorch_pins():
    """Of the builds whose pins were verified, those that bring the libraries as wheels."""
    listed = {(row["package"], release) for row in rows("nvidia_wheels") for release in row["releases"]}
    pinned = {
        (f"nvidia-{library}-cu{build['cuda'].partition('.')[0]}", build[library])
        for row in rows("torch")
        for build in row["builds"]
        for library in ("cudnn", "nccl", "nvshmem")
        if build.get(library) and library not in build.get("unverified", ()) and "read" in row and build.get("default")
    }
    assert len(pinned) >= 20
    assert pinned <= listed


def test_releases_of_wheels_stand_once_and_rise():
    for package in {row["package"] for row in rows("nvidia_wheels")}:
        found = [list(row["releases"]) for row in rows("nvidia_wheels") if row["package"] == package]
        releases = [release for row in found for release in row]
        assert len(releases) == len(set(releases))
        assert all(row == sorted(row, key=Version) for row in found)


def test_driver_branches_rise():
    branches = [row["branch"] for row in rows("drivers")]
    assert branches == sorted(set(branches))


def test_kernel_limits_are_about_branches_and_flavours_that_there_are():
    branches = {row["branch"]: row for row in rows("drivers")}
    for row in rows("kernels"):
        assert row["driver"].startswith(f"{row['branch']}.")
        assert set(row["kernel_modules"]) <= set(branches[row["branch"]]["kernel_modules"]), row
    assert [row["branch"] for row in rows("kernels")] == sorted(row["branch"] for row in rows("kernels"))


def test_only_cuda_that_was_never_released_is_missing():
    known = [row["version"] for row in rows("cuda")]
    wanted = [f"11.{minor}" for minor in range(9)] + [f"12.{minor}" for minor in range(10)]
    assert [one for one in wanted if one not in known] == ["12.7"]


def test_cuda_toolkits_of_a_major_have_one_driver_floor():
    floors = {(row["version"].split(".")[0], row["min_driver"]) for row in rows("cuda")}
    assert floors == {("11", "450.80.02"), ("12", "525.60.13"), ("13", "580.65.06")}


def test_the_first_cuda_of_a_gpu_compiles_for_it():
    newest = {row["version"]: Version(row["max_cc"]) for row in rows("cuda")}
    late = [
        row["model"]
        for row in rows("gpus")
        if row["min_cuda"] in newest and Version(row["compute_capability"]) > newest[row["min_cuda"]]
    ]
    assert not late


def test_cuda_drivers_belong_to_known_branches():
    known = {row["branch"] for row in rows("drivers")}
    bundled = {int(number.split(".")[0]) for row in rows("cuda") for number in row["updates"].values() if number}
    assert bundled <= known


def test_cuda_updates_belong_to_their_toolkit_and_rise():
    for row in rows("cuda"):
        updates = list(row["updates"])
        assert all(update.startswith(row["version"] + ".") for update in updates)
        assert [Version(update) for update in updates] == sorted(Version(update) for update in updates)


def test_forward_compatibility_names_known_branches():
    known = {row["branch"] for row in rows("drivers")}
    assert {branch for row in rows("cuda") for branch in row["forward_compat_branches"]} <= known


def test_supported_driver_branches_have_a_version():
    assert all(row["latest"] for row in rows("drivers") if row["status"] == "supported")


def test_gpu_names_and_pci_ids_are_unique():
    names = [name for row in rows("gpus") for name in {row["model"], *row.get("names", ())}]
    ids = [one for row in rows("gpus") for one in row["pci_ids"]]
    assert len(set(names)) == len(names)
    assert len(set(ids)) == len(ids)


def test_pci_ids_are_unique_and_of_a_known_generation():
    chips = [chip for row in rows("architectures") for chip in row["chips"]]
    ids = [number for row in rows("pci_ids") for number in row["devices"]]
    assert len(set(chips)) == len(chips)
    assert len(set(ids)) == len(ids) > 800
    for row in rows("pci_ids"):
        assert sum(row["chip"].startswith(chip) for chip in chips) == 1, row["chip"]
        assert set(row.get("vgpus", ())) <= set(row["devices"])


def test_gpus_agree_with_the_generation_of_their_chip():
    """What a row says of a GPU must be what its chip says, and every GPU must be found by an id."""
    chips = {number: row["chip"] for row in rows("pci_ids") for number in row["devices"]}
    columns = ("architecture", "compute_capability", "min_cuda", "max_driver_branch")
    for row in rows("gpus"):
        assert row["pci_ids"], row["model"]
        for number in set(row["pci_ids"]) & set(chips):
            generation = next(one for one in rows("architectures") if chips[number].startswith(tuple(one["chips"])))
            expected = {name: generation.get(name) for name in columns}
            assert {name: row.get(name) for name in columns} == expected, row["model"]
            assert set(row["kernel_modules"]) <= set(generation["kernel_modules"])


def test_ids_that_the_pci_id_database_lacks_are_few():
    known = {number for row in rows("pci_ids") for number in row["devices"]}
    assert {number for row in rows("gpus") for number in row["pci_ids"]} - known == set()


def test_the_source_names_the_pci_id_database():
    assert RAW["pci_ids"]["database"] in TABLES.subjects["sources"]["sources"]["P2"]


def test_boards_name_known_gpus_once():
    known = {row["model"] for row in rows("gpus")} | {
        name for row in rows("pci_ids") for name in row["devices"].values()
    }
    named = [gpu for row in rows("boards") for gpu in row["gpus"]]
    assert len(set(named)) == len(named)
    assert set(named) <= known
    for row in rows("boards"):
        assert ("imex" in row["services"]) == (row["switches"] == "rack"), row["board"]
        assert ("subnet_manager" in row["services"]) == (row["switches"] == "hidden"), row["board"]


def test_gpus_refer_to_known_branches_and_toolkits():
    branches = {row["branch"] for row in rows("drivers")}
    toolkits = {row["version"] for row in rows("cuda")}
    for row in rows("gpus"):
        assert row.get("max_driver_branch") in branches | {None}
        assert row["min_cuda"] in toolkits or Version(row["min_cuda"]) < Version("11.0")


@pytest.mark.parametrize("row", rows("torch"), ids=lambda row: row["version"])
def test_pytorch_builds(row):
    """What a new release must have: one default build, known toolkits, tags that match their toolkit, a CPU build."""
    tags = [build["tag"] for build in row["builds"]]
    assert len(set(tags)) == len(tags)
    assert "cpu" in tags
    assert sum(build.get("default", False) for build in row["builds"]) == 1
    toolkits = {one["version"] for one in rows("cuda")} | {"10.2"}
    for build in row["builds"]:
        if build["tag"] != "cpu":
            minor = ".".join(build["cuda"].split(".")[:2])
            assert minor in toolkits
            assert build["tag"] == "cu" + minor.replace(".", "")
            assert build["tag"] not in RAW["torch"]["never_existing_tags"]


def test_tensorflow_refers_to_known_toolkits():
    toolkits = {row["version"] for row in rows("cuda")}
    for row in rows("tensorflow"):
        assert row["cuda"] in toolkits
        assert all(release.startswith(row["version"] + ".") for release in row["releases"])
        assert ("pins" in row) == row["and_cuda"]


def test_distributions_have_a_repository_row():
    slugs = {row["slug"] for row in rows("repositories")}
    assert {row["repository"] for row in TABLES.rows("distros")} == slugs


def test_archives_refer_to_known_distributions_and_branches():
    known = {(row["id"], row["version"]) for row in rows("distros")}
    branches = {row["branch"] for row in rows("drivers")}
    for row in rows("archives"):
        assert (row["id"], row["version"]) in known
        assert row["branch"] in branches
        assert all(suite["version"].startswith(f"{row['branch']}.") for suite in row["suites"])


def test_libraries_refer_to_known_repositories_and_toolkits():
    slugs = {row["slug"] for row in rows("repositories")}
    toolkits = {row["version"] for row in rows("cuda")} | {row["version"].split(".")[0] for row in rows("cuda")}
    for subject in ("cudnn", "nccl"):
        for row in rows(subject):
            assert set(row["repositories"]) <= slugs
            assert row["cuda"] in toolkits


def test_conda_names_builds_of_known_releases():
    for row in rows("conda"):
        between = [
            one for one in rows("torch") if Version(row["first"]) <= Version(one["version"]) <= Version(row["last"])
        ]
        known = {build["tag"] for release in between for build in release["builds"]}
        assert set(row["builds"]) <= known
        assert {row["first"], row["last"]} <= {one["version"] for one in between}


@pytest.mark.parametrize("naming", ["ubuntu", "debian", "el"])
def test_driver_packages_leave_no_gap_between_branches(naming):
    mine = [row for row in rows("driver_packages") if row["naming"] == naming]
    branches = [row["branch"] for row in rows("drivers")]
    for branch in branches:
        assert sum(row["first"] <= branch <= row.get("last", branch) for row in mine) == 1, branch


def test_archives_name_known_branches_distributions_and_flavours():
    branches = {row["branch"]: row for row in rows("drivers")}
    systems = {(row["id"], row["version"]) for row in rows("distros")}
    for row in rows("archives"):
        assert (row["id"], row["version"]) in systems
        for suite in row["suites"]:
            assert set(suite["kernel_modules"]) <= set(branches[row["branch"]]["kernel_modules"])
            assert all(row["packages"][flavour] for flavour in suite["kernel_modules"])


def test_installer_options_rise_from_the_first_branch():
    steps = [step["first"] for step in RAW["driver_packages"]["installer_options"]]
    assert steps == sorted(set(steps))
    assert steps[0] == 0


def test_revisions_rise():
    steps = [Version(step["from"]) for step in RAW["driver_packages"]["ubuntu_revisions"]]
    assert steps == sorted(set(steps))
