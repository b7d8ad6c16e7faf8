"""Which label the answer of a chat endpoint names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from seqloom.decode.endpoint import Endpoint


def answers(
    endpoint: Endpoint, chats: Iterable[Sequence[Mapping[str, str]]], words: Sequence[str]
) -> Iterator[int | None]:
    """For each chat the number of the label in the answer; None: the answer is no label."""
    return (match_label(endpoint.ask(messages), words) for messages in chats)


def match_label(answer: str, words: Sequence[str]) -> int | None:
    """The label that the answer is or begins with, whatever its case; of several, the longest."""
    said = answer.strip().strip("\"'`*").casefold()
    same = [n for n, word in enumerate(words) if _begins(said, word.strip().casefold())]
    return max(same, key=lambda n: len(words[n]), default=None)


def _begins(said: str, word: str) -> bool:
    """Whether a text begins with a word, not just with its letters."""
    return said.startswith(word) and not said[len(word) : len(word) + 1].isalnum()
