"""One token of every row through Transformer blocks, as one compiled program; a test checks it against the blocks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.cache import Cache
from seqloom.layers.kernels import fields as at
from seqloom.layers.kernels.program import Program, Unsupported
from seqloom.layers.linear import matrix_of
from seqloom.layers.norms import RMSNorm
from seqloom.layers.positions import LearnedPositions
from seqloom.layers.transformer import ACTIVATIONS

_BENDS = {ACTIVATIONS["gelu"]: at.GELU, F.gelu: at.GELU_EXACT, ACTIVATIONS["relu"]: at.RELU}
_ROOM = 256  # slots that there is room for at first, for scores


class Blocks:
    """The blocks and what is around them: positions before, the last norm after."""

    def __init__(
        self, blocks: Any, norm: Any, rotary: Any, positions: Any, window: int, threads: int, room: int
    ) -> None:
        """`room`: for how many rows (program.py)."""
        self.program = program = Program(threads, room)
        self.table_of_places: Tensor | None = None
        self.added: Any = None  # positions that torch adds
        self.width, self.heads, self.window = blocks[0].attention.qkv.in_features, blocks[0].attention.heads, window
        self.x, self.side = program.space(self.width), program.space(self.width)
        self.sums = program.space(2)
        self.begin = program.operation(at.COPY if room == 1 else at.BEGIN, 1.0, Y=self.x, WIDTH=self.width)
        self.placed = self._positions(positions)
        self.turned, self.angles = self._rotary(rotary)
        self.room, self.scores = 0, torch.empty(0)
        self.attends = [self._block(block) for block in blocks]
        self.end = self._last(norm)
        program.close()

    def __call__(self, x: Tensor, cache: Cache) -> Tensor:
        """x (B, 1, width) -> the same; the new keys and values go to the cache's slots."""
        if self.added is not None:
            x = x + self.added(cache.places(x.device))
        program, x, found = self.program, x.contiguous(), torch.empty(x.shape)
        table, rooms = program.table, cache.rooms()
        with program.lock:
            table[self.begin, at.X], table[self.end, at.Y] = x.data_ptr(), found.data_ptr()
            counters = cache.read.contiguous(), cache.held.contiguous()  # which must outlive the run
            if program.room == 1:
                self._place(cache)
            else:
                self._place_rows(*counters)
            self._make_room(cache.end - cache.oldest)
            for number, (keys, values) in zip(self.attends, rooms, strict=True):
                table[number, at.KEYS : at.CAPACITY + 1] = keys.data_ptr(), values.data_ptr(), keys.size(2)
            program.run()
        return found

    def _place(self, cache: Cache) -> None:
        table, place = self.program.table, cache.reads[0]
        table[self.attends, at.FIRST], table[self.attends, at.SLOT] = cache.oldest, cache.start
        if self.table_of_places is not None:
            table[self.placed, at.ROW] = self.table_of_places.data_ptr() + 4 * self.width * place
        if self.turned is not None:
            table[self.turned, at.PLACED] = place

    def _place_rows(self, read: Tensor, held: Tensor) -> None:
        table = self.program.table
        table[:, at.LIVE], table[:, at.PLACES], table[:, at.HELD] = len(read), read.data_ptr(), held.data_ptr()
        if self.table_of_places is not None:
            table[self.placed, at.ROW] = self.table_of_places.data_ptr()

    def reaches(self, place: int) -> bool:
        """Whether there is a position for this token."""
        return self.table_of_places is None or place < len(self.table_of_places)

    def _positions(self, positions: Any) -> int:
        if positions is None:
            return -1
        if not isinstance(positions, LearnedPositions):
            self.added = positions
            return -1
        self.table_of_places = positions.table.weight.detach()
        self.program.address(self.table_of_places)
        return self.program.operation(at.PLACE, Y=self.x, WIDTH=self.width)

    def _rotary(self, rotary: Any) -> tuple[int | None, int]:
        if rotary is None:
            return None, 0
        size = 2 * len(rotary.speed)
        angles, speed = self.program.space(size), self.program.address(rotary.speed)
        return self.program.operation(at.TURN, rotary.gain, Y=angles, SPEED=speed, WIDTH=size), angles

    def _make_room(self, slots: int) -> None:
        """For the scores of every head over so many slots."""
        if slots > self.room:
            self.room = max(_ROOM, 2 * slots)
            self.scores = torch.empty(max(self.heads, self.parts), self.room)
            self.program.table[self.attends, at.SCORES] = self.scores.data_ptr()
            self.program.table[self.attends, at.SCORE_SIZE] = self.room

    def _last(self, norm: Any) -> int:
        """Writes what comes out."""
        several = self.program.room > 1
        if several and not isinstance(norm, nn.Identity):
            self._norm(norm, self.x, self.x)
        elif not isinstance(norm, nn.Identity):
            return self._norm(norm, self.x, 0)
        return self.program.operation(at.END if several else at.COPY, 1.0, X=self.x, WIDTH=self.width)

    def _block(self, block: Any) -> int:
        if block.pre:
            self._norm(block.norm_1, self.x, self.side)
            attend = self._attention(block.attention, self.side)
            self._norm(block.norm_2, self.x, self.side)
            self._feed(block.feed, self.side)
        else:
            attend = self._attention(block.attention, self.x)
            self._norm(block.norm_1, self.x, self.x)
            self._feed(block.feed, self.x)
            self._norm(block.norm_2, self.x, self.x)
        return attend

    def _attention(self, attention: Any, x: int) -> int:
        program, heads, groups, size = self.program, attention.heads, attention.kv_heads, attention.size
        queries, mixed = program.space((heads + 2 * groups) * size, "queries"), program.space(heads * size, "mixed")
        program.product(matrix_of(attention.qkv), x, queries)
        names = {}
        if attention.norms is not None:
            names = {name: program.address(norm.weight)
                     for name, norm in zip(("NORM_Q", "NORM_K"), attention.norms, strict=True)}  # fmt: skip
        eps = 0.0 if attention.norms is None else _eps(attention.norms[0])
        if program.room > 1:
            names |= {"SPARE": program.address(torch.empty(self.parts * 2 * size)), "SPARE_SIZE": 2 * size}
        attend = program.operation(
            at.ATTEND, eps, groups if program.room == 1 and program.threads > 1 else self.parts, X=queries, Y=mixed,
            HEADS=heads, GROUPS=groups, HEAD=size, ANGLES=self.angles, WINDOW=self.window, **names
        )  # fmt: skip
        program.product(matrix_of(attention.out), mixed, self.x, at.ADD)
        return attend

    def _feed(self, feed: Any, x: int) -> None:
        if not feed.gated and feed.bend not in _BENDS:
            raise Unsupported("an activation that has no kernel")
        hidden = self.program.space(feed.out.in_features, "hidden")
        self.program.product(matrix_of(feed.up), x, hidden, at.SILU if feed.gated else _BENDS[feed.bend])
        self.program.product(matrix_of(feed.out), hidden, self.x, at.ADD)

    @property
    def parts(self) -> int:
        """Into which the attention of several rows is cut."""
        return 1 if self.program.threads == 1 else 4 * self.program.threads

    def _norm(self, norm: Any, x: int, y: int) -> int:
        if type(norm) not in (nn.LayerNorm, RMSNorm):
            raise Unsupported(f"{type(norm).__name__} has no kernel")
        gain, shift, mean = norm.weight, getattr(norm, "bias", None), int(type(norm) is nn.LayerNorm)
        gain, shift = self.program.address(gain), self.program.address(shift)
        return self.program.operation(
            at.NORM, _eps(norm), X=x, Y=y, WIDTH=self.width, GAIN=gain, SHIFT=shift, MEAN=mean, SPARE=self.sums
        )  # fmt: skip


def _eps(norm: Any) -> float:
    return torch.finfo(torch.float32).eps if norm.eps is None else float(norm.eps)
