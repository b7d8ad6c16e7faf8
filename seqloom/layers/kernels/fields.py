"""The rows of a program's table: one operation each, as 64-bit numbers, most of them addresses and sizes."""

from __future__ import annotations

SIZE = 28  # numbers per operation
KIND, PARTS = 0, 1  # which operation; how many parts threads may take, 1: too small for more than one
COPY, PLACE, NORM, TURN, PRODUCT, ATTEND, CELL, BEGIN, END, GATES = range(10)  # kinds

X, Y, WIDTH = 2, 3, 4  # what most operations read and write, and the size

FACTOR = 0  # COPY: y = factor * x; factor is in the table of real numbers; BEGIN and END: to columns, and to rows
ROW = 5  # PLACE: y += the row at this address
GAIN, SHIFT, MEAN, EPS = 5, 6, 7, 0  # NORM: y = norm(x); MEAN: whether it is subtracted; eps is a real number
PLACED, SPEED = 5, 6  # TURN: y = cosines and sines of (place * speed), times FACTOR

WEIGHT, SCALES, BIAS, ROWS, STRIDE, BYTES, BEND = 5, 6, 7, 8, 9, 10, 11  # PRODUCT: y = bend(weight x * scales + bias)
NONE, ADD, SILU, GELU, GELU_EXACT, RELU = range(6)  # ADD: added to y; SILU: gated by the first half of the rows

HEADS, GROUPS, HEAD, KEYS, VALUES, CAPACITY, FIRST, SLOT = 4, 5, 6, 7, 8, 9, 10, 11  # ATTEND; x: queries, keys, values
ANGLES, NORM_Q, NORM_K, SCORES, SCORE_SIZE = 12, 13, 14, 15, 16  # its eps: EPS for queries and keys

GATING, HIDDEN, WEIGHT_X, SCALES_X, STRIDE_X, WEIGHT_H, SCALES_H, STRIDE_H = 5, 6, 7, 8, 9, 10, 11, 12  # CELL
BIAS_X, BIAS_NEW, BEFORE_H, BEFORE_C, AFTER_C, CELL_BYTES = 13, 14, 15, 16, 17, 18  # h goes to y
LSTM, GRU, RNN, RNN_RELU = range(4)  # GATING

# Of all operations on several rows, which lie side by side: vectors are (WIDTH, ROOM)
ROOM, LIVE = 20, 21  # how many rows there is room for, 1: not side by side; how many there are
SUMS, SPARE, SPARE_SIZE = 22, 23, 24  # PRODUCT: sums before BEND; memory for each part, in numbers
HELD, PLACES, WINDOW = 25, 26, 27  # counters per row: slots filled, tokens read (PLACE, TURN, ATTEND); WINDOW: 0: none

TICKET, DONE, ARRIVED, COUNT, OPERATIONS, NUMBERS = 0, 16, 32, 48, 49, 50  # of the control block, on lines of their own
