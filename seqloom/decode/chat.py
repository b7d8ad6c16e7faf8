"""Chat templates: how the messages of a chat become the tokens that a model was trained on.

A chat template is a program (Jinja) that came with somebody's weights, so it runs in a sandbox (sandbox.py). It never
sees what the messages say: contents are replaced by marks, and the tokens of the contents take the place of the marks.
So a message that spells a special token stays text, while those of the template become special tokens.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from seqloom.core.errors import UserError

_ROLES = ("system", "user", "assistant")

Messages = Sequence[Mapping[str, str]]


class ChatTokenizer(Protocol):
    template: str
    bos: int
    eos: int
    specials: frozenset[int]

    def name(self, id: int) -> str: ...
    def encode(self, text: str) -> np.ndarray: ...
    def encode_marked(self, text: str) -> np.ndarray: ...


def conversation(tokenizer: Any, messages: Messages, answer: bool = True) -> list[tuple[np.ndarray, int | None]]:
    """Token ids piece by piece: those of the template (None), and those of the content of each message (its number).

    `answer`: the assistant is to speak next.
    """
    template = getattr(tokenizer, "template", "")
    if not template:
        raise UserError("this model has no chat template: it was not made for chats; leave chat out")
    own: ChatTokenizer = tokenizer
    names = {"bos_token": own.name(own.bos), "eos_token": own.name(own.eos)}
    pieces = render(template, messages, names, answer)
    return [(own.encode_marked(text) if n is None else own.encode(text), n) for text, n in pieces]


def chat_ids(tokenizer: Any, messages: Messages) -> list[int]:
    """The whole conversation, up to where the assistant is to speak."""
    return [int(id) for ids, _ in conversation(tokenizer, messages) for id in ids]


def turn_ends(tokenizer: Any) -> set[int]:
    """The tokens that end what the assistant says: the end of a text, and what the template writes after a message."""
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    pieces = conversation(tokenizer, messages, answer=False)
    place = max(n for n, (_, message) in enumerate(pieces) if message == 1)
    after = [int(id) for ids, _ in pieces[place + 1 :] for id in ids][:1]
    return {tokenizer.eos, *(id for id in after if id in tokenizer.specials)}


def render(template: str, messages: Messages, names: Mapping[str, str], answer: bool) -> list[tuple[str, int | None]]:
    """The text of a chat in pieces, with the number of the message whose content a piece is."""
    from seqloom.decode.sandbox import Refused, run

    if strange := [m["role"] for m in messages if m["role"] not in _ROLES]:
        raise UserError(f"role {strange[0]!r}: a message is of one of {', '.join(_ROLES)}")
    marks = [f"\ue000{secrets.token_hex(8)}{n}\ue001" for n in range(len(messages))]
    said = [{"role": m["role"], "content": mark} for m, mark in zip(messages, marks, strict=True)]
    try:
        text = run(template, {"messages": said, "add_generation_prompt": answer, **names})
    except Refused as error:
        raise UserError(f"the chat template of this model is refused: {error}") from None
    found: list[tuple[str, int | None]] = []
    for part in re.split("(" + "|".join(marks) + ")", text) if marks else [text]:
        n = marks.index(part) if part in marks else None
        found += [(part if n is None else messages[n]["content"], n)] if part else []
    if missing := [n for n in range(len(marks)) if all(n != which for _, which in found)]:
        raise UserError(f"the chat template of this model leaves out what the {messages[missing[0]]['role']} says")
    return found
