# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check by its name: `nox -l` lists them, `make test` runs the default ones."""

import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import nox
import yaml

ROOT = Path(__file__).parent
OUTPUT = ROOT / "tests" / "output"
TREE = ROOT / ".cache" / "tree" / "ansible_collections" / "allreduce" / "gpu"

nox.options.default_venv_backend = "none"  # everything is in .venv already (.ci/bootstrap)
# Two lanes that `make test` runs side by side: hosts wait for networks and disks while code uses processors.
nox.options.tags = ["code", "hosts"]
nox.options.stop_on_first_error = False

# Ends a test that hangs, with the stacks of its threads: ten times the slowest test (a minute) on two busy cores.
# Neighbours stay on one worker, whose module fixtures then run once, and the last files are shared out.
WORKERS = ("-n", "2", "--dist", "worksteal")
TIMEOUT = "--timeout=600"

# Tests of what runs on EL8's nodes, and those of them that need newer Pythons.
OLD_TESTS = "tests/unit/plugins/module_utils"
NOT_ON_36 = tuple(
    f"{OLD_TESTS}/{name}"
    for name in (
        "health/test_recordings.py",  # rebuilt by newer code
        "machine/test_rebuilt_recordings.py",  # tests the controller's code, too
        "host/test_kernels_modinfo.py",  # the lab makes its module files
        "settings/test_tuning_properties.py",  # hypothesis is for newer releases
        "settings/test_slurm_accounting_properties.py",
        "slurm/test_decision_properties.py",
        "storage/test_config_lines_properties.py",
        "host/test_audit_properties.py",
        "training/test_flight_properties.py",
        "training/test_stacks.py",  # starts scripts as the controller's code does
    )
)

os.environ["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
# A busy package index answers late, and uv gives up after half a minute.
os.environ.setdefault("UV_HTTP_TIMEOUT", "180")
os.environ.setdefault("UV_HTTP_RETRIES", "6")
os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"


def _pytest(session, name, *args, python="python"):
    OUTPUT.mkdir(parents=True, exist_ok=True)
    command = (python, "-m", "pytest", f"--junitxml={OUTPUT / name}.xml", "-o", f"junit_suite_name={name}", *args)
    session.run(*command, external=python != "python")


def _pinned(*names):
    """Requirements of these names in the versions that .venv has."""
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.partition("==")[0] in names]


def _copy_tree(session):
    """A copy of the checkout where Ansible's tools want a collection to lie: they would not follow the link in .collections."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    files = session.run("git", "ls-files", "-co", "--exclude-standard", silent=True, log=False).splitlines()
    for name in files:
        if name.startswith((".collections", ".ci/")) or not (ROOT / name).is_file():
            continue
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, TREE / name)
    with session.chdir(TREE):
        session.run("git", "init", "--quiet", log=False)  # else they ask the outer repository, which ignores .cache


PROSE = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "data", "changelogs", "tests/faults.yml",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("roles/*/README.md")),
)  # fmt: skip
CODE = ("plugins", "playbooks", "roles", "tools", "examples", "noxfile.py")
# Words of tools/words.txt that are identifiers or programs in code.
NAMES_IN_CODE = "beside,box,boxes,venv,virtualenv"


@nox.session(tags=["all", "code"])
def lint(session):
    """ruff, mypy, yamllint, codespell, ansible-lint at profile production."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("yamllint", "--strict", ".")
    session.run("codespell", *PROSE)
    session.run("codespell", f"--ignore-words-list={NAMES_IN_CODE}", *CODE)
    old = ("vermin", "-q", "--no-tips", "--violations", "-t=3.6-")
    session.run(*old, "plugins/modules", "plugins/module_utils")
    tests = {str(path.relative_to(ROOT)) for path in (ROOT / OLD_TESTS).rglob("*.py")} - {*NOT_ON_36}
    session.run(*old, "--backport", "dataclasses", *sorted(tests))
    _copy_tree(session)
    with session.chdir(TREE):
        session.run("ansible-lint", "--strict", env={"ANSIBLE_COLLECTIONS_PATH": str(TREE.parents[2])})


# What a mistake in most changes fails, in some minutes: no playbook runs, no lab, and none of the resolver's many plans.
QUICK = (
    "ci", "plugins/filter", "plugins/lookup", "plugins/module_utils", "plugins/plugin_utils", "roles/test_shape.py",
    "roles/test_structure.py", "test_decisions.py", "test_habits.py", "test_links.py", "test_public_names.py", "test_readme.py",
    "test_words.py", "test_workflows.py",
)  # fmt: skip


@nox.session
def quick(session):
    """Unit tests that take some minutes; `make quick` runs them with the linters, and CI before anything else."""
    paths = [f"tests/unit/{name}" for name in QUICK]
    ignored = "--ignore=tests/unit/plugins/plugin_utils/stack"
    _pytest(session, "quick", "-q", *WORKERS, TIMEOUT, ignored, *paths, *session.posargs)


@nox.session(tags=["all"])
def properties(session):
    """Property tests with many more examples than `make test` takes, and others each time."""
    files = [
        str(path.relative_to(ROOT))
        for path in ROOT.glob("tests/unit/**/test_*.py")
        if "@given" in path.read_text("utf-8")
    ]
    session.env["HYPOTHESIS_PROFILE"] = "searching"
    _pytest(session, "properties", *WORKERS, *files, *session.posargs)


@nox.session(tags=["all"])
def survey(session):
    """10,000 random questions to the resolver: every plan is checked, everything that a refusal proposes is tried."""
    session.env["SURVEY_QUESTIONS"] = "10000"
    _pytest(session, "survey", "-s", "tests/unit/plugins/plugin_utils/stack/test_survey.py", *session.posargs)


@nox.session(tags=["all"])
def published(session):
    """List published releases that the tables lack: the only tests that ask the package index."""
    _pytest(session, "published", "tests/published", *session.posargs)


@nox.session(tags=["all"], venv_backend="uv", python="3.11")
def examples(session):
    """Examples with the real PyTorch, TensorFlow and CuPy, on this machine's processors."""
    session.install("--require-hashes", "-r", "requirements-examples.txt")
    # PyTorch's CPU build is on no index that the hashes could come from: it is the one that lab hosts install.
    program = "from tests.lab import wheels; wheels.ensure('demo'); print(wheels.get('demo').directory)"
    found = session.run(sys.executable, "-c", program, silent=True, external=True).splitlines()[-1]
    session.install("--no-index", "--find-links", found, "torch")
    _pytest(session, "examples", "-q", "tests/examples", f"--ignore={HOROVOD_EXAMPLE}", *session.posargs)


HOROVOD_EXAMPLE = "tests/examples/test_train_horovod_tf.py"


@nox.session(tags=["all"], venv_backend="uv", python="3.11", reuse_venv=True)
def examples_horovod(session):
    """The example of Horovod and TensorFlow, with a Horovod that is compiled here as role horovod does it; once, which takes minutes."""
    session.install("--require-hashes", "-r", "requirements-horovod.txt")
    table = yaml.safe_load((ROOT / "data" / "stack" / "horovod.yml").read_text(encoding="utf-8"))
    row = table["rows"][-1]
    wanted = Path(session.create_tmp()) / "horovod.txt"
    wanted.write_text(f"{row['requirement']} --hash=sha256:{row['source']['sha256']}\n", encoding="utf-8")
    frameworks = {"HOROVOD_WITH_TENSORFLOW": "1", "HOROVOD_WITHOUT_PYTORCH": "1"}
    build = {**table["build_environment"]["all"], **table["build_environment"]["cpu"], **frameworks}
    # Not from the cache: it does not tell apart what was compiled with other variables.
    options = ("--no-cache", "--no-deps", "--no-build-isolation", "--no-binary=horovod", "--require-hashes")
    session.install(*options, "-r", wanted, env=build)
    _pytest(session, "examples_horovod", "-q", HOROVOD_EXAMPLE, *session.posargs)


# What unit tests import besides the requirements of the collection.
UNIT_TESTS = (
    "codespell", "distlib", "hypothesis", "jsonschema", "junitparser", "py-rattler", "pyte", "pytest", "pytest-timeout", "pytest-xdist", "ruamel-yaml",
)  # fmt: skip


@nox.session(tags=["all"], venv_backend="uv")
def unit_216(session):
    """The same on ansible-core 2.16, the last one that manages EL8."""
    session.install("--compile-bytecode", "--require-hashes", "-r", "requirements-216.txt")
    session.install(*_pinned(*UNIT_TESTS))
    _pytest(session, "unit_216", "-q", *WORKERS, TIMEOUT, "tests/unit", *session.posargs)


# What Ansible loads or runs, and of it what 2.21 refuses or no longer returns.
LOADED = tuple(
    f"tests/unit/{name}"
    for name in ("playbooks", *(f"plugins/{kind}" for kind in ("action", "callback", "filter", "lookup", "modules")))
)
NOT_ON_221 = (
    "--ignore=tests/unit/playbooks/test_plan.py",  # systems whose Python is too old for its modules
    "--deselect=tests/unit/plugins/action/test_resolve_stack.py::test_a_profile_with_a_constraint_laid_over_it",  # the same
    "--deselect=tests/unit/plugins/modules/test_gpu_health.py::test_xids_in_the_kernel_log",  # looks at the invocation
)


@nox.session(tags=["all"])
def unit_221(session):
    """Unit tests of what Ansible loads, on ansible-core 2.21, if Python 3.12 is installed."""
    required = ("bcrypt", "cyclonedx-python-lib", "jmespath", "uv")
    programs = _core(session, "2.21", (3, 12), "unit", _pinned(*required, *UNIT_TESTS))
    if programs is None:
        session.skip("ansible-core 2.21 needs Python 3.12")
    session.env["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    arguments = ("-q", *WORKERS, TIMEOUT, *NOT_ON_221, *LOADED, *session.posargs)
    _pytest(session, "unit_221", *arguments, python=str(programs / "python"))


@nox.session(tags=["all", "code"])
def unit_36(session):
    """Code that runs on EL8's nodes, tested on the real Python 3.6."""
    found = sorted((Path.home() / ".pyenv" / "versions").glob("3.6.*/bin/python"))
    python = str(found[-1]) if found else shutil.which("python3.6")
    if python is None:
        session.skip(
            "no Python 3.6 here: put python3.6 on the PATH, or one into ~/.pyenv/versions, to test what EL8 runs"
        )
    place = ROOT / ".nox" / "unit_36"
    old = str(place / "bin" / "python")
    if not (place / "ansible" / "ansible").is_dir():
        session.run(python, "-m", "venv", "--clear", str(place), external=True)
        # Its own pip takes releases that say they are too new for it.
        session.run(old, "-m", "pip", "install", "-q", "pip==21.3.1", external=True)
        session.run(
            old, "-m", "pip", "install", "-q", "pytest==7.0.1", "dataclasses", "nvidia-ml-py", "PyYAML", external=True
        )
        # 2.16 is the last ansible-core whose modules run on 3.6; it does not say so of itself as a controller.
        core = ("--no-deps", "--target", str(place / "ansible"), "ansible-core==2.16.*")
        session.run("uv", "pip", "install", "-q", "--python", sys.executable, *core)
    session.run(
        old, "-m", "pytest", "-q", "-p", "no:cacheprovider", OLD_TESTS,
        f"--junitxml={OUTPUT / 'unit_36.xml'}", "-o", "junit_suite_name=unit_36", *(f"--ignore={path}" for path in NOT_ON_36),
        *session.posargs, external=True, env={"PYTHONPATH": str(place / "ansible"), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


@nox.session(tags=["all", "code"])
def sanity(session):
    """ansible-test sanity, in a copy that lies where ansible-test wants collections."""
    _copy_tree(session)
    # ansible-test downloads a script that installs pip; the standard library can do that without a network.
    pip = Path.home() / ".ansible" / "test" / "cache" / "get_pip_24_2.py"
    if not pip.exists():
        pip.parent.mkdir(parents=True, exist_ok=True)
        pip.write_text("import ensurepip\n\nensurepip.bootstrap()\n", encoding="utf-8")
    with session.chdir(TREE):
        session.run(
            "git", "init", "--quiet", log=False
        )  # else ansible-test asks the outer repository, which ignores .cache
        # One Python: modules' floor of 3.6 has tests of its own, ansible-test 2.19 begins at 3.8.
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        session.run("ansible-test", "sanity", "--color=no", f"--python={version}", *session.posargs)


def _build(session):
    """Make the archive in dist/ from a copy: the build looks at every file of its directory, and hosts of the lab lose theirs meanwhile."""
    _copy_tree(session)
    with session.chdir(TREE):
        session.run("ansible-galaxy", "collection", "build", "--force", "--output-path", str(ROOT / "dist"))


@nox.session
def build(session):
    """The archive, in dist/."""
    _build(session)


@nox.session(tags=["all", "code"])
def galaxy(session):
    """Let Galaxy's own importer look at the archive; release it, install it with each ansible-core, verify its signature."""
    _build(session)
    archive = sorted((ROOT / "dist").glob("allreduce-gpu-*.tar.gz"))[-1]
    session.run("python", "-m", "galaxy_importer.main", str(archive))
    cores = [ROOT / ".venv" / "bin", _core_216(session), *(_core(session, *one) for one in NEWEST_CORES)]
    session.env["CORES"] = os.pathsep.join(str(path) for path in cores if path)
    _pytest(session, "galaxy", TIMEOUT, "tests/galaxy", *session.posargs)


@nox.session(tags=["all", "code"])
def browser(session):
    """Render a report in headless Chromium and look at it."""
    _pytest(session, "browser", "tests/report", *session.posargs)


# Last of its lane: it alone takes both processors, which the other lane has left by then.
@nox.session(tags=["all", "code"])
def unit(session):
    """Unit and property tests on the ansible-core of requirements.txt, without the long ones."""
    _pytest(session, "unit", *WORKERS, TIMEOUT, "-m", "not long", "tests/unit", *session.posargs)


@nox.session(tags=["all"])
def unit_long(session):
    """Unit tests of half a minute and more: roles with real tools, of which Molecule shows the usual way on hosts."""
    _pytest(session, "unit_long", *WORKERS, TIMEOUT, "-m", "long", "tests/unit", *session.posargs)


@nox.session(tags=["all"], venv_backend="uv")
def docs(session):
    """Build the documentation site in .cache/site/html, and look at it in headless Chromium at phone width."""
    session.install("--require-hashes", "-r", "requirements-docs.txt")
    session.run("python", "-m", "tools.site.build", ".cache/site")
    python = str(ROOT / ".venv" / "bin" / "python")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    arguments = (f"--junitxml={OUTPUT / 'docs.xml'}", "-o", "junit_suite_name=docs", "tests/site", *session.posargs)
    session.run(python, "-m", "pytest", *arguments, external=True)


# One of each family: the distribution's own driver really compiled; dnf against stub repositories, ansible-core 2.16 and Python 3.6.
# NVIDIA's packages from apt (ubuntu2204) take ten minutes more: molecule_all has them.
MOLECULE = ("debian12", "rocky8")


def _core_216(session):
    """Programs of ansible-core 2.16, in an environment of their own."""
    wanted = (ROOT / "requirements-216.txt").read_text(encoding="utf-8")
    return _environment(session, "core_216", sys.executable, wanted, "--require-hashes", "-r", "requirements-216.txt")


# Releases that need a newer Python than ansible-core 2.19, the one that the tests run on: (release, lowest Python).
NEWEST_CORES = (("2.20", (3, 12)), ("2.21", (3, 12)))


def _core(session, release, lowest, name="core", packages=()):
    """Programs of the newest ansible-core of a release, installed as the README says; None where no Python is new enough."""
    pythons = {path: _version(path) for path in (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python")}
    pythons |= {Path(path): one for one in ((3, 12), (3, 13)) if (path := shutil.which(f"/usr/bin/python3.{one[1]}"))}
    python = max((path for path, one in pythons.items() if one >= lowest), key=pythons.get, default=None)
    if python is None:
        session.warn(
            f"ansible-core {release} is not tested here: put Python {lowest[0]}.{lowest[1]} into ~/.pyenv/versions or /usr/bin"
        )
        return None
    wanted = (f"ansible-core=={release}.*", "nvidia-ml-py", *packages)
    return _environment(session, f"{name}_{release.replace('.', '')}", str(python), f"{python} {wanted}", *wanted)


def _version(python):
    """The version of an interpreter of pyenv, by the name of its directory."""
    return tuple(int(part) for part in re.findall(r"\d+", python.parents[1].name)[:2])


def _environment(session, name, python, stamp, *packages):
    """Programs of an environment with these packages; made again when the stamp changes, by one lane while the other waits."""
    place = ROOT / ".nox" / name
    file = place / "stamp"
    place.parent.mkdir(exist_ok=True)
    with (place.parent / f"{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists() or file.read_text(encoding="utf-8") != stamp:
            session.run("uv", "venv", "-q", "--clear", "--python", python, str(place))
            # As in .ci/bootstrap: each run would compile Ansible again.
            python = str(place / "bin" / "python")
            session.run("uv", "pip", "install", "-q", "--compile-bytecode", "--python", python, *packages)
            file.write_text(stamp, encoding="utf-8")
    return place / "bin"


def _molecule(session, names, old=False):
    names = session.posargs or names
    failed = []
    for name in names:
        scenario = (ROOT / "molecule" / name / "molecule.yml").read_text(encoding="utf-8")
        core_216 = f"{_core_216(session)}:" if old or "ansible_core: '2.16'" in scenario else ""
        try:
            session.run("molecule", "test", "--scenario-name", name, env={"PATH": core_216 + os.environ["PATH"]})
        except nox.command.CommandFailed:
            failed.append(name)
    if failed:
        session.error(f"molecule failed: {', '.join(failed)}")


@nox.session(tags=["hosts"])
def molecule(session):
    """The full run, from two bare hosts to the report, on some distributions."""
    _molecule(session, MOLECULE)


@nox.session(tags=["all"])
def molecule_all(session):
    """The same on every distribution, and every launcher behind a firewall."""
    rows = yaml.safe_load((ROOT / "data" / "stack" / "distros.yml").read_text(encoding="utf-8"))["rows"]
    _molecule(session, [*(row["scenario"] for row in rows if row["scenario"]), "cluster"])


@nox.session(tags=["all"])
def molecule_216(session):
    """Debian and Ubuntu under ansible-core 2.16 too."""
    _molecule(session, ("debian12", "ubuntu2204"), old=True)


def _reference_systems():
    """Inventories that describe their hosts, and so need none to be planned for."""
    found = {path.parent.name: path.read_text(encoding="utf-8") for path in ROOT.glob("inventories/*/hosts.yml")}
    return {name: text for name, text in sorted(found.items()) if "gpu_stack_host" in text}


# The systems with nodes that a queue is for.
REFERENCE_SLURM = ("a100-el8", "a100-ubuntu2204")


@nox.session(tags=["all"])
def reference(session):
    """The full run of every reference system on hosts that answer like it, or of those named; --keep keeps the hosts.

    Those of REFERENCE_SLURM run under Slurm, too, as do those named with --slurm: on Debian 12, in both cases.
    """
    systems = _reference_systems()
    named = [name for name in session.posargs if name not in ("--keep", "--slurm")]
    unknown = [name for name in named if name not in systems]
    if unknown:
        session.error(f"{', '.join(unknown)}: there is no such reference system, use one of {', '.join(systems)}")
    failed = []
    flags = ["--slurm"] if "--slurm" in session.posargs else []
    runs = [(name, flags) for name in named or ([] if flags else systems)]
    runs += [(name, ["--slurm"]) for name in REFERENCE_SLURM if not named]
    for name, queue in runs:
        path = f"{_core_216(session)}:" if 'ansible_core: "2.16"' in systems[name] and not queue else ""
        options = [*queue, *([] if "--keep" in session.posargs else ["--down"])]
        try:
            session.run(
                sys.executable, "-m", "tests.lab", "reference", name, *options, env={"PATH": path + os.environ["PATH"]}
            )
        except nox.command.CommandFailed:
            failed.append(" ".join([name, *queue]))
    if failed:
        session.error(f"these reference systems failed: {', '.join(failed)}")


@nox.session(tags=["hosts"])
def scenarios(session):
    """Two bare hosts: bad input is refused with one sentence, and nothing is touched."""
    _pytest(session, "scenarios", "tests/scenarios/test_10_bad_input.py", *session.posargs)


@nox.session(tags=["all"])
def scenarios_all(session):
    """Two hosts through a cluster's life: bad input, power cut, convergence, training, installed archive; branches, faults, files."""
    _core_216(session)
    _pytest(session, "scenarios_all", "tests/scenarios", *session.posargs)
