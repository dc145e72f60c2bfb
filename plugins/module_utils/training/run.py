# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of one training run on a node.

  <run>/                root's: launch.json and the programs that read it; the training user may read
  <run>/work/           the user's: the script, its files, what it writes; working directory of the ranks
  <run>/logs/           the user's: torchrun.log or that of another engine, agent.json, job.json, rank<N>.out, rank<N>.err, rank<N>.json,
                        metrics.json, gpus.jsonl, rank<N>.stack, rank<N>.cause, flight-rank<N>

Everything below logs/ may have been put there by an unprivileged user while we read as root, so only regular files
of that user are read, without following links.
"""

import base64
import io
import json
import os
import re
import shutil
import tarfile

from ..machine.files import make_directories
from ..machine.problems import problem
from ..machine.regular import IrregularError, read_end
from .describe import describe
from .flight import DUMP_FILE, read_whole

_RANK_FILE = re.compile(r"^rank(\d+)\.json$")
_AGENT_LOGS = ("horovodrun.log", "mpirun.log", "slurm.log", "torchrun.log")
_LOG_FILE = re.compile(r"^((horovodrun|mpirun|slurm|torchrun)\.log|gpus\.jsonl|rank\d+\.(out|err|stack))$")
_NOTE = re.compile(r"^(rank\d+(\.end)?|agent)\.json$")
_TAIL_BYTES = 65536
_METRICS_BYTES = 1048576
_LINE = 1000  # characters of a line that is told, its last ones
_CAUSE_BYTES = 8192  # launch/node/sitecustomize.py writes less
# A user may write anything: as many ranks of a node, lists in lists, and bytes of all logs in limits of one.
MOST_RANKS, _DEEPEST, _LOGS = 1024, 32, 32
# What rank.py notes of a rank, and what each of it may be.
_NOTED = {"rank": (0, 10**6), "local_rank": (0, 10**6), "world_size": (1, 10**6), "attempt": (0, 10**6)}


class RunError(Exception):
    """The refusal of a run. ``problem``: its record, which the text describes."""

    def __init__(self, problem):
        super(RunError, self).__init__(describe(problem))
        self.problem = problem


def create(path, archive, variables, uid, gid):
    """Make the directory of a run from the tar.gz ARCHIVE, which holds launch.json, the programs that read it, and work/.

    VARIABLES are environment variables for the script that launch.json may override.
    """
    if not os.path.isdir(os.path.dirname(path)):
        make_directories(os.path.dirname(path))
    before = os.umask(0o027)  # with root's own, which may be 077, the group could not enter
    try:
        _create(path, archive, variables, uid, gid)
    finally:
        os.umask(before)


def _create(path, archive, variables, uid, gid):
    try:
        os.mkdir(path, 0o750)
    except FileExistsError:
        raise RunError(problem("run_exists", path))
    unpack(archive, path)
    _add_variables(os.path.join(path, "launch.json"), variables)
    os.mkdir(os.path.join(path, "logs"), 0o750)
    for name in ("work", "logs"):
        _give(os.path.join(path, name), uid, gid)
    _share(path, gid)


def renew(path, archive, variables, gid):
    """Give a run that is there another launch.json; forget what its ranks noted, not what they wrote.

    ARCHIVE holds nothing else: what the user owns is not root's to write.
    """
    with tarfile.open(archive, "r:gz") as tar:
        others = [name for name in tar.getnames() if name != "launch.json"]
    if others or not os.path.isdir(path):
        raise RunError(problem("wrong_member", others[0]) if others else problem("run_absent", path))
    unpack(archive, path)
    _add_variables(os.path.join(path, "launch.json"), variables)
    logs = os.path.join(path, "logs")
    for name in os.listdir(logs):
        if _NOTE.match(name):
            os.unlink(os.path.join(logs, name))
    _share(path, gid)


def unpack(archive, path):
    """Extract directories and regular files; anything else, or a name that leads out of PATH, is refused."""
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if not (member.isdir() or member.isfile()) or member.name.startswith("/") or ".." in member.name.split("/"):
                raise RunError(problem("wrong_member", member.name))
            target = os.path.join(path, member.name)
            if member.isdir():
                os.makedirs(target, 0o750, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(target), 0o750, exist_ok=True)
            with open(target, "wb") as out:
                shutil.copyfileobj(tar.extractfile(member), out)
            os.chmod(target, 0o750 if member.mode & 0o100 else 0o640)


def ranks(path, uid):
    """Return the notes of rank.py about each rank that started, sorted by rank, with its last output added.

    Each: {rank, local_rank, world_size, attempt, started (epoch seconds), last_output (epoch seconds), last_line}
    """
    logs = os.path.join(path, "logs")
    found = []
    for name in sorted(os.listdir(logs)) if os.path.isdir(logs) else []:
        if _RANK_FILE.match(name) and len(found) < MOST_RANKS:
            # A file that was caught half written is there at the next look.
            rank = _note(_json(read_tail(os.path.join(logs, name), uid, _TAIL_BYTES)[0]))
            if rank and name == "rank%d.json" % rank["rank"]:
                found.append(rank)
    # Ranks that started again, after a node was lost, may have other numbers than before: each place has one process.
    newest = {rank["local_rank"]: rank for rank in sorted(found, key=lambda rank: rank["started"])}
    told = sorted(newest.values(), key=lambda rank: rank["rank"])
    return [dict(rank, **_last_output(logs, rank["rank"], uid)) for rank in told]


def _note(value):
    """Return a note of rank.py; None for anything else."""
    given = value if isinstance(value, dict) else {}
    found = {key: given.get(key, _NOTED[key][0]) for key in _NOTED}
    started = given.get("started")
    numbers = all(_is_whole(found[key], *_NOTED[key]) for key in _NOTED)
    if not numbers or not isinstance(started, (int, float)) or not 0 <= started < 1e12:
        return None
    return dict(found, started=started)


def _is_whole(value, least, most):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def tail(path, rank, count, uid):
    """Return the last COUNT lines of a rank's stderr, or of its stdout when stderr is empty."""
    for stream in ("err", "out"):
        text = read_tail(os.path.join(path, "logs", "rank%d.%s" % (rank, stream)), uid, _TAIL_BYTES)[0]
        lines = _lines(text, count)
        if lines:
            return lines
    return []


def exceptions(path, uid, found):
    """Return {rank as text: [names of types]} of the exceptions that ended ranks since they started, the most specific type first.

    found: what ranks() returned
    """
    told = {}
    for rank in found:
        place = os.path.join(path, "logs", "rank%d.cause" % rank["rank"])
        data, written = read_whole(place, uid, _CAUSE_BYTES)
        # Ranks that were started again have notes of their former lives.
        if data and written >= rank["started"] - 1:
            told[str(rank["rank"])] = data.decode("utf-8", "replace").splitlines()
    return told


def _lines(text, count):
    """Return the last lines that say something."""
    lines = [line.rstrip()[-_LINE:] for line in text.splitlines() if line.strip()]
    return lines[max(0, len(lines) - count) :]


def agent(path, uid):
    """Return the note that agent.py wrote at its end, None while it runs or when it was killed."""
    found = _json(read_tail(os.path.join(path, "logs", "agent.json"), uid, _METRICS_BYTES)[0])
    return found if isinstance(found, dict) else None


def job(path, uid):
    """Return how the job of a scheduler stands, as the agent that submitted it noted; None where there is none."""
    found = _json(read_tail(os.path.join(path, "logs", "job.json"), uid, _TAIL_BYTES)[0])
    return found if isinstance(found, dict) else None


def agent_tail(path, count, uid):
    """Return the last COUNT lines of the agent's own log, which is named after the program that starts the ranks."""
    logs = os.path.join(path, "logs")
    text = "".join(read_tail(os.path.join(logs, name), uid, _TAIL_BYTES)[0] for name in _AGENT_LOGS)
    return _lines(text, count)


def metrics(path, uid):
    """Return (metrics or None, one sentence why they cannot be used or None)."""
    place = os.path.join(path, "logs", "metrics.json")
    text, before = read_tail(place, uid, _METRICS_BYTES)
    if not text.strip() and (not os.path.lexists(place) or os.path.isfile(place)):
        return None, None
    found = None if before else _json(text)
    if isinstance(found, dict):
        return found, None
    return (
        None,
        "The file named in ALLREDUCE_METRICS does not hold one JSON object of at most 1 MiB and %d levels." % _DEEPEST,
    )


def metrics_written(path):
    """Return when the metrics were written last; None where they are not there."""
    try:
        return os.lstat(os.path.join(path, "logs", "metrics.json")).st_mtime
    except OSError:
        return None


def collect_logs(path, uid, limit):
    """Return all logs as base64 of a tar.gz; of a file longer than LIMIT bytes, its end behind a line that says so, and no dump.

    All together have at most 32 times as many bytes, and are those of 1024 ranks.
    """
    packed, left = io.BytesIO(), _LOGS * limit
    logs = os.path.join(path, "logs")
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        names = [name for name in os.listdir(logs) if _LOG_FILE.match(name) or DUMP_FILE.match(name)]
        # The logs of the whole node first.
        for name in sorted(names, key=lambda name: (name.startswith(("rank", "flight")), name))[: 4 * MOST_RANKS]:
            data = None
            if _LOG_FILE.match(name):
                text, cut = read_tail(os.path.join(logs, name), uid, min(limit, left))
                if cut:
                    text = "[%d bytes left out here; the whole file is %s]\n%s" % (cut, os.path.join(logs, name), text)
                data = text.encode("utf-8")
            else:
                data = read_whole(os.path.join(logs, name), uid, min(limit, left))[0]
            if data is not None:
                left = max(0, left - len(data))
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return base64.b64encode(packed.getvalue()).decode("ascii")


def read_tail(path, uid, limit):
    """Return (last LIMIT bytes as text, number of bytes before them); ("", 0) unless it is a regular file of UID."""
    try:
        content, before = read_end(path, limit, uid=uid)
    except (OSError, IrregularError):
        return "", 0
    return content.decode("utf-8", "replace"), before


def _last_output(logs, rank, uid):
    newest, line = None, ""
    for stream in ("out", "err"):
        path = os.path.join(logs, "rank%d.%s" % (rank, stream))
        try:
            status = os.lstat(path)
        except OSError:
            continue
        # The line shown as progress is the last one of stdout that says something, which a bracket does not; stderr only tells how
        # long the rank has been silent.
        if status.st_size and (newest is None or status.st_mtime > newest):
            newest = status.st_mtime
        if stream == "out":
            lines = [part for part in re.split(r"[\r\n]+", read_tail(path, uid, 4096)[0]) if re.search(r"\w", part)]
            line = lines[-1].strip()[:300] if lines else ""
    return {"last_output": newest, "last_line": line}


def _json(text):
    """Return the value of a text that is JSON; None for anything else, and for one that is deeper than programs go."""
    try:
        value = json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > _DEEPEST:
            return None
        if isinstance(one, (dict, list)):
            waiting += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]
    return value


def _whole(digits):
    """Return a number; thousands of digits would take long, and no program takes them."""
    return int(digits) if len(digits) < 300 else float(digits)


def _add_variables(path, variables):
    with open(path) as source:
        launch = json.load(source)
    launch["variables"] = dict(variables, **launch["variables"])
    with open(path, "w") as out:
        json.dump(launch, out)


def _share(path, gid):
    """Let the group enter and read; no one else: launch.json holds the script's environment."""
    for name in os.listdir(path):
        if os.path.isfile(os.path.join(path, name)):
            os.chown(os.path.join(path, name), 0, gid)
    os.chown(path, 0, gid)


def _give(path, uid, gid):
    os.chown(path, uid, gid)
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            os.lchown(os.path.join(folder, name), uid, gid)
