# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one question to the resolver costs: random questions with a fixed seed, those answered with a stack and those refused."""

import statistics
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
QUESTIONS = 1000
LIMITS = {"accepted": 10, "refused": 100}  # milliseconds of CPU


def measure(count=QUESTIONS):
    """Print median and 95th percentile of both kinds; whether they are within their limits."""
    found = _times(count)
    print(f"{count} random questions to the resolver, in milliseconds of CPU")
    good = True
    for kind, limit in LIMITS.items():
        times = sorted(found[kind])
        middle, high = statistics.median(times), times[len(times) * 95 // 100]
        good = good and high < limit
        print(
            f"  {kind:10}{len(times):6} questions  median {middle:6.1f}  p95 {high:6.1f}  most {times[-1]:6.1f}  (p95 below {limit})"
        )
    return good


def _times(count):
    sys.path[:0] = [str(CHECKOUT / "tests" / "unit" / "plugins" / "plugin_utils" / "stack")]
    import survey

    found = {kind: [] for kind in LIMITS}
    for question in survey.questions(count):
        begin = time.process_time()
        try:
            answer = survey.resolve(question)
        except survey.InputError:
            continue
        found["accepted" if answer["stack"] else "refused"].append((time.process_time() - begin) * 1000)
    return found


if __name__ == "__main__":
    sys.exit(not measure(*map(int, sys.argv[1:])))
