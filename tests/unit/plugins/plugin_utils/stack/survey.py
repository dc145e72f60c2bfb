# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the resolver random questions, and try everything that a refusal proposes.

`python tests/unit/plugins/plugin_utils/stack/survey.py 10000` prints the counts.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[5] / ".collections"), str(HERE.parent)]

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import blame  # noqa: E402 (found through the line above)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import FRAMEWORKS, component  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import session_for  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.search import solve  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load  # noqa: E402
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.wording import advice_text  # noqa: E402
from checker import check  # noqa: E402
from judges import judges  # noqa: E402

SEED = 14
TABLES = load()
OSES = [f"{row['id']} {row['version']}" for row in TABLES.rows("distros")]
MODELS = [row["model"] for row in TABLES.rows("gpus")]
KERNELS = [(), (), (), ("6.8.0-84-generic",), ("5.14.0-687.12.1.el9_8.x86_64",), ("6.1.0-18-amd64", "6.1.0-17-amd64")]
INTERPRETERS = [None, None, None, "distribution", "standalone", "/usr/bin/python3.10"]
FACTS = {"gpus", "os", "arch", "ansible_core", "kernels", "kernel", "gcc", "mig", "wheels"}
# Of these, what another host has.
HOST = {"gpus", "os", "arch"}


@cache
def _published():
    """Every version in the tables by the constraint that may name it."""
    pythons = {python for row in TABLES.rows("torch") for python in row["python"]}
    return {
        "driver": [str(row["branch"]) for row in TABLES.rows("drivers")],
        "cuda": [update for row in TABLES.rows("cuda") for update in (row["version"], *row["updates"])],
        "cudnn": [row["version"] for row in TABLES.rows("cudnn")],
        "nccl": [row["version"] for row in TABLES.rows("nccl")],
        "pytorch": [row["version"] for row in TABLES.rows("torch")],
        "pytorch_index": sorted({build["tag"] for row in TABLES.rows("torch") for build in row["builds"]}),
        "tensorflow": [release for row in TABLES.rows("tensorflow") for release in row["releases"]],
        "cupy": [one for row in TABLES.rows("cupy") for releases in row["wheels"].values() for one in releases],
        "horovod": [row["version"] for row in TABLES.rows("horovod")],
        "python": sorted(pythons),
        "kernel_modules": ["open", "proprietary"],
        "driver_source": ["nvidia", "distribution", "runfile"],
        "kernel": ["6.8", "6.8.0-84-generic", "5.14.0-687.12.1.el9_8.x86_64", "6.17.0-5-generic"],
        "gcc": ["9", "11", "13", "14"],
        "mig": ["enabled", "1g.10gb"],
    } | {name: judge.published() for name, judge in judges().items()}


LOOSE = {
    "driver": ["latest", ">=535", "<580"], "cuda": ["latest", "11", "12", "13", ">=12,<13"], "nccl": ["latest"],
    "cudnn": ["latest", "8.9", "9"], "pytorch": ["latest", "2.0", "<2.6"], "pytorch_index": ["cu120", "pypi"],
    "tensorflow": ["latest", "<2.16"], "cupy": ["latest", "12"], "horovod": ["latest"], "python": [">=3.11", "3.8"],
    **{name: judge.LOOSE for name, judge in judges().items()},
}  # fmt: skip


GPUS_ONLY = {"mig"} | {name for name, judge in judges().items() if judge.GPUS_ONLY}


def questions(count, seed=SEED):
    """Yield questions; half of the versions are exact ones of the tables, the others ranges and prefixes."""
    draw, published = random.Random(seed), _published()
    for _number in range(count):
        gpus = draw.choices(MODELS, k=draw.choice([0, 1, 1, 1, 2])) * draw.choice([1, 4, 8])
        names = draw.sample(sorted(published), draw.randint(0, 5))
        names = [name for name in names if gpus or name not in GPUS_ONLY]
        pools = {name: LOOSE[name] if name in LOOSE and draw.random() < 0.5 else published[name] for name in names}
        yield {
            "os": draw.choice(OSES),
            "arch": draw.choice(["x86_64", "x86_64", "aarch64"]),
            "gpus": gpus,
            "environments": draw.choice(["one", "split"]),
            "interpreter": draw.choice(INTERPRETERS),
            "kernels": draw.choice(KERNELS),
            "request": {name: draw.choice(pool) for name, pool in pools.items()} | _needs(names),
        }


def _needs(names):
    """What has to be asked for with these components."""
    return {key: value for name in names if name in judges() for key, value in judges()[name].NEEDS.items()}


def changed(question, changes):
    """Return the question with other constraints; None gives one up, and a framework that is given up is not planned."""
    request = dict(question["request"])
    for name, value in changes.items():
        request.pop(name, None)
        if value is not None:
            request[name] = value
        elif name == "pytorch":
            request[name] = "none"
    interpreter = changes.get("python_env_python", question["interpreter"])
    request.pop("python_env_python", None)
    environments = request.pop("environments", question["environments"])
    return {**question, "request": request, "interpreter": interpreter, "environments": environments}


def resolves(question):
    """Return True if there is a stack, and one that the independent checker accepts."""
    try:
        found = resolve(question)["stack"]
    except InputError:
        return False
    return found is not None and not check(found, question["kernels"])


def measure(question):
    """Return the names of everything that an answer is, good and bad, as often as it is."""
    try:
        answer = resolve(question)
    except InputError:
        return Counter(["not a question"])
    if answer["stack"]:
        wrong = check(answer["stack"], question["kernels"])
        return Counter(["accepted", *["accepted, but the checker objects" for _one in wrong[:1]]])
    return Counter(["refused", *_joint(question, answer), *_single(question, answer), *_blame(question)])


def _joint(question, answer):
    """Judge what is proposed as a whole."""
    found = answer["suggestion"]
    if found is None:
        hardware = [one for one in answer["conflicts"] if set(one["between"]) <= FACTS]
        yield "no suggestion" if hardware else "no suggestion, and no hardware forbids it"
        if any(not one["suggestion"] for one in hardware):
            yield "hardware forbids, and nothing says which would do"
        return
    yield "suggestion"
    if not any(found["changes"].values()):
        yield from _given_up(question, answer)
    request = {name: value for name, value in found["request"].items() if name != "environments"}
    again = {
        **question,
        "request": request,
        "environments": found["request"].get("environments", question["environments"]),
    }
    again["interpreter"] = found["changes"].get("python_env_python", question["interpreter"])
    if not resolves(again):
        yield "suggestion does not resolve"


def _given_up(question, answer):
    """Judge a suggestion that only gives something up: whether this host could have it in any version."""
    names = set(answer["suggestion"]["changes"])
    gone = names & set(FRAMEWORKS) or names - {"python_env_python"}
    if not gone or any(possible(question, name) for name in gone):
        yield "suggestion only drops what the host could have"
        return
    yield "suggestion only drops what the host forbids"
    forbidden = [one for one in answer["conflicts"] if set(one["between"]) & HOST]
    if forbidden and all(one["suggestion"] == _changes_as_text(one) for one in forbidden):
        yield "hardware forbids, and nothing says which would do"


def _changes_as_text(conflict):
    return "; or ".join(map(advice_text, conflict["alternatives"]))


def possible(question, name):
    """Return True if the host could have any version of a component, were nothing else asked for: each is tried.

    On hosts with GPUs a build for CPUs is not what was asked for. What is compiled beside a framework may have any of them.
    """
    constraints, needs = [{name: version} for version in _published()[name]], {name, *component(name).beside}
    if "pytorch" in needs:
        builds = [tag for tag in [*_published()["pytorch_index"], "pypi"] if tag != "cpu"]
        constraints += [{**constraint, "pytorch_index": tag} for constraint in constraints for tag in builds]
    if "tensorflow" in needs - {name}:
        constraints += [
            {name: "latest", "tensorflow": version, "pytorch": "none"} for version in _published()["tensorflow"]
        ]
    free = {**question, "environments": "split", "interpreter": None}
    declared = {key: value for key, value in question["request"].items() if key in FACTS}
    return any(resolves({**free, "request": {**declared, **constraint}}) for constraint in constraints)


def _single(question, answer):
    """Judge what is proposed beside each conflict."""
    for conflict in answer["conflicts"]:
        for changes in conflict["alternatives"]:
            yield "advice"
            if not resolves(changed(question, changes)):
                yield "advice does not resolve"
        if len(conflict["reasons"]) != max(1, len(conflict["rules"])):
            yield "not one sentence for each rule"
        if not conflict["suggestion"]:
            yield "conflict without any advice"


def _blame(question):
    """Judge every set of parts that is blamed: it clashes, and with any one part away it does not."""
    parsed, session = read_question(TABLES, question), session_for(TABLES)
    for parts in blame.blamed(session, parsed):
        yield "blame"
        if solve(session, blame.keep(parsed, parts)) is not None:
            yield "blame is not sufficient"
        if any(solve(session, blame.keep(parsed, [one for one in parts if one != part])) is None for part in parts):
            yield "blame is not minimal"


def survey(count, seed=SEED):
    """Return what was counted over random questions."""
    return sum((measure(question) for question in questions(count, seed)), Counter())


if __name__ == "__main__":
    for name, number in sorted(survey(int(sys.argv[1])).items()):
        print(f"{number:8} {name}")
