"""Markov: only the last tau tokens matter

n-grams of growing order, on growing amounts of real text. Were the text a Markov chain of order tau, the loss would
stop falling at that order, however much there is to count. A sampled chain shows that this can be seen.
"""

from __future__ import annotations

import numpy as np
import torch

from seqloom.core.network import SequenceModel
from seqloom.core.progress import Reporter
from seqloom.core.task import AnyTask
from seqloom.data.stream import TokenStream
from seqloom.pages.formats import short
from seqloom.pages.plots import Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._language import PIECES, counted, documents, language_task, stream
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, measured
from seqloom.tokenizers import train_tokenizer

SAMPLE = "python-source"
GAIN = 0.01  # nats per byte: less than this is no gain
CHAIN = 2  # tau of the sampled chain
Losses = dict[int, np.ndarray]  # bytes of training text: (orders, seeds)


def measure(quick: bool, progress: Reporter) -> Finding:
    sizes, taus, seeds, held = [8_000, 32_000, 128_000, 512_000], list(range(9)), 5, 20_000
    if quick:
        sizes, taus, seeds, held = [2_000, 16_000], list(range(4)), 2, 2_000
    source = documents(SAMPLE, 100_000 if quick else None)
    tokenizer = train_tokenizer("bytes", [])
    task = language_task(tokenizer)
    text: Losses = {size: np.zeros((len(taus), seeds)) for size in sizes}
    chain = np.zeros((len(taus), seeds))  # with the largest amount
    seen = np.zeros((len(sizes), len(taus)))  # share of held-out windows that occur in training, seed 0
    for seed in range(seeds):
        train, test = (stream(tokenizer, part) for part in source.split(seed, held, sizes[-1]))
        model = counted(task, train, CHAIN + 1)
        progress.update(seed / seeds, {"doing": f"seed {seed}: sampling a chain"})
        drawn = _sampled(model, sizes[-1] + held, seed)
        parts = [TokenStream.of(part, len(part), tokenizer.size) for part in (drawn[:-held], drawn[-held:])]
        for n, size in enumerate(sizes):
            progress.update((seed + (n + 1) / (len(sizes) + 1)) / seeds, {"doing": f"seed {seed}: {size:,} bytes"})
            text[size][:, seed] = _losses(task, train.head(size), test, taus)
            if seed == 0:
                seen[n] = [_seen(train[:size], test[: len(test)], tau) for tau in taus]
        chain[:, seed] = _losses(task, parts[0], parts[1], taus)
    return _finding(taus, held, text, chain, seen, {SAMPLE: source.digest})


def _losses(task: AnyTask, train: TokenStream, test: TokenStream, taus: list[int]) -> list[float]:
    return [task.evaluate(counted(task, train, tau + 1), test)["loss"] for tau in taus]


@torch.inference_mode()
def _sampled(model: SequenceModel, count: int, seed: int) -> np.ndarray:
    """`count` tokens sampled from the chain: 256 rows in parallel, each from an empty state, joined end to end."""
    rows = 256
    draw, token, state, found = torch.Generator().manual_seed(seed), torch.zeros(rows, 1, dtype=torch.long), None, []
    for _ in range(-(-count // rows)):
        predictions, state = model(token, state)
        token = torch.multinomial(predictions[:, -1].exp(), 1, generator=draw)
        found.append(token)
    return torch.cat(found, dim=1).flatten()[:count].numpy()


def _seen(train: np.ndarray, test: np.ndarray, tau: int) -> float:
    """The share of the windows of tau + 1 bytes of the held-out text that occur in the training text."""
    known, asked = (np.lib.stride_tricks.sliding_window_view(ids.astype(np.uint16), tau + 1) for ids in (train, test))
    names = {window.tobytes() for window in known}
    return sum(window.tobytes() in names for window in asked) / len(asked)


def useful(losses: np.ndarray) -> int:
    """The largest tau whose loss is lower than that of tau - 1 by more than GAIN, by the whole interval."""
    gains = [measured(("", ""), losses[n - 1] - losses[n]) for n in range(1, len(losses))]
    return max((n + 1 for n, gain in enumerate(gains) if (gain.low or 0.0) > GAIN), default=0)


def verdict(orders: list[int], control: int, furthest: int) -> Verdict:
    """The useful order for each amount of text, that of the chain at the largest amount, and the largest tried."""
    if control != CHAIN:
        return "untold"
    return "holds" if orders[0] == orders[-1] < furthest else "conditions"


def _finding(
    taus: list[int], held: int, text: Losses, chain: np.ndarray, seen: np.ndarray, data: dict[str, str]
) -> Finding:
    sizes, largest = list(text), list(text)[-1]
    seeds = text[largest].shape[1]
    orders, control = [useful(text[size]) for size in sizes], useful(chain)
    decided = verdict(orders, control, taus[-1])
    numbers: list[Measured] = []
    for size in sizes:
        name = (f"loss at tau = {taus[-1]}, {size:,} bytes", f"tau = {taus[-1]} 的损失，{size:,} 个字节")
        numbers.append(measured(name, text[size][-1], unit=("nats", "奈特"), bounds=(0.0, None)))
    for tau in (CHAIN, taus[-1]):
        name = (f"sampled chain: loss at tau = {tau}", f"采样的链：tau = {tau} 的损失")
        said = ("the same from tau on", "从 tau 起不变")
        numbers.append(measured(name, chain[tau], said, unit=("nats", "奈特"), bounds=(0.0, None)))
    return Finding(
        verdict=decided,
        summary=_summary(sizes, orders, control),
        protocol=(
            f"sample:{SAMPLE} by bytes; files shuffled by {seeds} seeds, {held:,} characters from up to {PIECES} "
            f"files held out, {sizes[0]:,} to {largest:,} bytes of the others counted. Modified Kneser-Ney n-grams of "
            f"order tau + 1, tau = 0 to {taus[-1]}. The chain: sampled from the n-gram with tau = {CHAIN} of the "
            "largest text, as long as that text, counted and scored in the same way. A useful tau lowers the loss of "
            f"tau - 1 by more than {GAIN:g} nats.",
            f"sample:{SAMPLE}，以字节为单位；文件按 {seeds} 个种子打乱，从至多 {PIECES} 个文件中留出 {held:,} 个字符，"
            f"对其余文件中的 {sizes[0]:,} 到 {largest:,} 个字节计数。修正 Kneser-Ney n-gram，阶数为 tau + 1，tau = 0 "
            f"到 {taus[-1]}。链：从最大文本上 tau = {CHAIN} 的 n-gram 中采样，与该文本等长，计数和评分方式相同。若 "
            f"tau 比 tau - 1 的损失低 {GAIN:g} 奈特以上，则视为有用。",
        ),
        numbers=numbers,
        figure=_figure(taus, text, chain),
        caption=(
            "Loss on held-out text against the number of tokens seen, for growing amounts of text, and on a sampled "
            "chain; bands are 95 % intervals",
            "留出文本上的损失随可见词元数的变化：不同的文本量，以及采样的链；色带为 95 % 置信区间",
        ),
        tables=[_needed(sizes, taus, text, seen)],
        data=data,
    )


def _figure(taus: list[int], text: Losses, chain: np.ndarray) -> list[Panel]:
    x = ("tau: preceding bytes that are looked at", "tau：所看的前文字节数")
    y = ("loss (nats per byte)", "损失（奈特/字节）")
    sizes = {size: (f"{size:,} bytes", f"{size:,} 个字节") for size in text}
    chained = (f"chain with tau = {CHAIN}", f"tau = {CHAIN} 的链")
    return [
        Lines(x=x, y=y, title=("Text", "文本"),
              curves=[curve(sizes[size], taus, text[size], bounds=(0.0, None)) for size in text]),
        Lines(x=x, y=y, title=("A chain sampled from an n-gram, the largest amount", "从 n-gram 采样的链，最大数据量"),
              curves=[curve(chained, taus, chain, bounds=(0.0, None))]),
    ]  # fmt: skip


def _needed(sizes: list[int], taus: list[int], text: Losses, seen: np.ndarray) -> Rows:
    """For each tau, from which amount of text it pays, and how much of the held-out text was seen."""
    rows: list[list[Pair | float | str]] = []
    for tau in taus[1:]:
        pays = next((size for size in sizes if useful(text[size][tau - 1 : tau + 1]) == 1), None)
        rows.append([str(tau), f"{pays:,}" if pays else "–", *(f"{100 * share:.0f} %" for share in seen[:, tau])])
    counts: list[Pair] = [(f"seen in {size:,}", f"{size:,} 个字节中见过") for size in sizes]
    return Rows(
        (
            f"Bytes of text from which tau is better than tau - 1 by more than {GAIN:g} nats (of those tried), "
            "and share of the held-out windows of tau + 1 bytes that occur in the training text (first seed)",
            f"tau 比 tau - 1 好 {GAIN:g} 奈特以上所需的文本字节数（在所试的范围内），以及留出文本中 tau + 1 个字节的窗"
            "口在训练文本中出现的比例（第一个种子）",
        ),
        [("tau", "tau"), ("bytes needed", "所需字节数"), *counts],
        rows,
    )


def _summary(sizes: list[int], orders: list[int], control: int) -> Pair:
    listed = " / ".join(map(str, orders))
    amounts = " / ".join(f"{size:,}" for size in sizes)
    grows = (
        (" It is larger for the largest amount than for the smallest.", "最大文本量下的 tau 大于最小文本量下的。")
        if orders[-1] > orders[0]
        else ("", "")
    )
    return (
        f"On a chain that has tau = {CHAIN}, the loss stops falling at {control}. On text, the last tau that lowers "
        f"the loss by more than {short(GAIN)} nats is {listed} with {amounts} bytes to count.{grows[0]}",
        f"在 tau = {CHAIN} 的链上，损失在 {control} 处停止下降。在文本上，最后一个使损失下降超过 {short(GAIN)} 奈特的 "
        f"tau 为 {listed}，对应的计数字节数为 {amounts}。{grows[1]}",
    )


STUDY = Study(
    number=17,
    title=(
        "Markov: only the last tau tokens matter",
        "马尔可夫：只有最近的 tau 个词元有影响",
    ),
    claim=(
        "A Markov model assumes that the state at time t depends only on the tau states before it and on nothing "
        "earlier.",
        "马尔可夫模型假设 t 时刻的状态仅仅取决于其前 tau 个时刻的状态，与更前面的状态无关。",
    ),
    sources=(("002", "马尔可夫模型"),),
    rule=(
        f"A tau is useful if it lowers the loss of tau - 1 by more than {GAIN:g} nats, by the whole interval. The "
        "claim holds of this text if the largest useful tau is the same for the smallest and the largest amount of "
        "text and smaller than the largest tried; otherwise under conditions, "
        f"namely for a tau that suits the data at hand; it cannot be told if a sampled chain with tau = {CHAIN} is "
        "not recognised as such.",
        f"若 tau 比 tau - 1 的损失低 {GAIN:g} 奈特以上（按整个置信区间），则称其有用。若最大的有用 tau 在最小和最大文"
        "本量下相同，且小于所试的最大值，则该假设对此文本成立；否则为有条件成立，即 tau 要适合现有的数据；"
        f"若 tau = {CHAIN} 的采样链未被识别出来，则无法判断。",
    ),
    remarks=(
        (
            "A first run with three seeds and longer texts gave an order that did not grow steadily; seeds and "
            "sizes were then changed, the rule was not.",
            "最初的一次运行用三个种子和更长的文本，得到的阶数并不稳步增长；之后改变了种子数和文本大小，规则没有变。",
        ),
        (
            "An n-gram has to see a context to use it; that a longer one does not help an n-gram does not mean that "
            "the text has no longer dependencies.",
            "n-gram 必须见过某个上下文才能利用它；更长的上下文对 n-gram 没有帮助，并不说明文本没有更长的依赖。",
        ),
        (
            "Kneser-Ney smoothing falls back on shorter contexts; by plain frequencies, every unseen window would have "
            "probability 0. Even so, the loss on the chain rises beyond its tau: counts are spread over more contexts.",
            "Kneser-Ney 平滑会退回到较短的上下文；若只按频率计算，每个未见过的窗口概率都为 0。即便如此，链上的损失在超"
            "过其 tau 之后仍会上升：计数分散到了更多的上下文中。",
        ),
    ),
    measure=measure,
)
