"""How long a poll pauses between two looks."""

from __future__ import annotations

import random

_JITTER = 0.1
_LONGEST_BACKOFF = 60.0
_LONGEST_GATHERING = 1.0


def pause(interval: float, failures: int) -> float:
    """Seconds until the next look: doubled with each failure, and never the same for all polls.

    Args:
        interval: seconds between two looks that are answered.
        failures: how many in a row were not.
    """
    longest = max(interval, _LONGEST_BACKOFF)
    doubled = interval * 2.0 ** min(failures, 10)
    return min(doubled, longest) * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not a secret


def gathering(interval: float) -> float:
    """Seconds before the first look, in which the other waits that a restarted triggerer resumes come in."""
    return min(interval, _LONGEST_GATHERING)
