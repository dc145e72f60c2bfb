# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what verification, training and benchmark left in the report directory: the one door through which it enters the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from ..documents import watching
from ..documents.benchmark import Benchmark
from ..documents.parsing import DocumentError, parse
from ..documents.training import TrainingResult
from ..documents.verification import Verification
from ..documents.watching import Watching
from ..problems.phrases import clean
from ..problems.problem import Problem, ProblemError

FORMAT = 1
T = TypeVar("T", Verification, TrainingResult, Benchmark)
_CODES = {
    Verification: "verification",
    TrainingResult: "result",
    Benchmark: "benchmark",
}  # how the codes of their problems begin


class ReportError(ProblemError):
    """A report that cannot be made of what is there, or not be written."""


def read(directory: Path) -> tuple[Verification, list[TrainingResult], Benchmark | None]:
    """Return verification, training results and newest benchmark below the directory; raise ReportError."""
    if not directory.is_dir():
        raise ReportError(Problem("no_report_directory", str(directory)))
    verification = directory / "verify.json"
    if not verification.is_file():
        raise ReportError(Problem("no_verification", str(directory)))
    results = [_load(TrainingResult, path) for path in sorted(directory.glob("training/*/result.json"))]
    benchmarks = sorted(directory.glob("benchmarks/*/benchmark.json"))
    return _load(Verification, verification), results, _load(Benchmark, benchmarks[-1]) if benchmarks else None


def watched(directory: Path, run: str) -> list[Watching]:
    """Return the activity of the GPUs of each node during a run; none for a run that has no directory of its name."""
    if Path(run).name != run:
        return []
    paths = sorted((directory / "training" / run / "logs").glob("*/gpus.jsonl"))
    texts = {clean(path.parent.name): path.read_text(encoding="utf-8", errors="replace") for path in paths}
    return [one for node, text in texts.items() if (one := watching.read(node, text))]


def _load(cls: type[T], path: Path) -> T:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return parsed(cls, document, path)
    except ReportError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _problem(cls, "unreadable", path, {"error": _reason(error)}) from error


def parsed(cls: type[T], document: Any, path: Path) -> T:
    """Return the JSON document of a file as a value whose texts HTML, JSON and XML can hold; raise ReportError."""
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise _problem(cls, "format", path, {"found": found, "supported": FORMAT})
    try:
        return parse(cls, _harmless(document))
    except DocumentError as error:
        wrong = {"place": error.path, "value": error.value, "expected": error.expected}
        raise _problem(cls, "wrong_value", path, wrong) from error


def _harmless(value: Any) -> Any:
    """Clean every text of a JSON value, the keys too."""
    if isinstance(value, dict):
        return {clean(key): _harmless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    return clean(value) if isinstance(value, str) else value


def _problem(cls: type[T], code: str, path: Path, detail: dict[str, Any]) -> ReportError:
    return ReportError(Problem(f"{_CODES[cls]}_{code}", str(path), {**detail, "directory": str(path.parent)}))


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON from line {error.lineno} column {error.colno} on"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)
