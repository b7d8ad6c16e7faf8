"""The RNN's hidden state is a readable time line; attention shows where a model looks

Recurrent networks and a Transformer with the same number of parameters learn to predict a text. Linear probes read from
the vector at every step what was read, when, and whether a quotation or a bracket is open. Attention weights are
compared with what changing each character does to the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import fixed, short
from seqloom.pages.plots import Bars, BarSeries, Heat, Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies import _conditions, _reading
from seqloom.studies._models import parameters
from seqloom.studies._paragraphs import Rows, Texts, paragraphs, read
from seqloom.studies._probing import FIRST, LAGS, OPEN, Halves, Scores, probed_scores
from seqloom.studies._study import Finding, Measured, Study, curve, measured
from seqloom.studies._training import descend, matched, network, stretches

SAMPLE, HELD = "python-docs", 0.25  # share of the text, at its end, that models are not trained on
SIZE, ROWS, LENGTH, CLIP = 60_000, 16, 128, 1.0
RATES = (1e-2, 3e-3)
LAG, WINDOW, CONTEXT = 4, 8, 64  # lag of the rule; characters of a baseline; and of a row in which one is replaced
CLEAR = 0.1  # by which a probe of the state has to be better than one of the input
SENTENCE = 'Use "f(x)" or (rarely) "None'
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("RNN", {}),
    "lstm": ("LSTM", {}),
    "gpt": ("GPT", {"width": 32, "depth": 2, "heads": 2, "context": LENGTH, "preset": "llama"}),
}
RECURRENT = ("rnn", "lstm")
FEATURES: dict[str, Pair] = {
    "rnn": ("RNN", "RNN"),
    "lstm": ("LSTM", "LSTM"),
    "gpt": ("GPT, last layer", "GPT，最后一层"),
    "rnn untrained": ("RNN, untrained", "RNN，未训练"),
    "lstm untrained": ("LSTM, untrained", "LSTM，未训练"),
    "window": (f"last {WINDOW} characters", f"最近 {WINDOW} 个字符"),
    "input": ("input alone", "仅输入"),
}
MEASURES: tuple[Pair, Pair] = (("rank correlation", "秩相关"), ("same largest", "最大处相同"))
BOUNDS = ((-1.0, 1.0), (0.0, 1.0))
Tables = dict[str, dict[str, list[float]]]  # by features and quantity: of all seeds


@dataclass(frozen=True)
class Sizes:
    seeds: int
    updates: int
    probed: int  # rows, half of them to fit the probe
    occluded: int  # rows
    draws: int


def measure(quick: bool, progress: Reporter) -> Finding:
    sizes = Sizes(2, 1, 40, 4, 1) if quick else Sizes(4, 1200, 400, 120, 2)
    texts = read(SAMPLE, HELD)
    halves = fitted, tested = paragraphs(texts, sizes.probed, LENGTH)
    options = {name: matched(name, SIZE, texts.tokens, **given) for name, (_, given) in MODELS.items()}
    probed: dict[str, list[Scores]] = {name: [] for name in FEATURES}
    for name, length in (("window", WINDOW), ("input", 1)):
        parts = [_reading.window(half.ids, length, texts.tokens) for half in halves]
        probed[name].append(probed_scores(parts, halves, texts.tokens))
    pilots: dict[str, list[float]] = {}
    losses: dict[str, list[float]] = {name: [] for name in MODELS}
    agreed: list[dict[str, tuple[float, float]]] = []
    shown: dict[str, Network] = {}
    for n, (name, seed) in enumerate(product(MODELS, range(sizes.seeds + 1))):
        progress.update(n / (len(MODELS) * (sizes.seeds + 1)), {"doing": f"{name}, seed {seed}"})
        if seed == 0:
            tried = [_trained(name, 0, texts, sizes.updates, rate, options[name]) for rate in RATES]
            pilots[name] = [_loss(model, tested.ids) for model in tried]
            continue
        rate = RATES[int(np.argmin(pilots[name]))]
        model = _trained(name, seed, texts, sizes.updates, rate, options[name])
        shown.setdefault(name, model)
        losses[name].append(_loss(model, tested.ids))
        probed[name].append(_probed(model, halves, texts.tokens))
        if name in RECURRENT:
            blank = network(name, texts.tokens, seed, **options[name]).eval()
            probed[f"{name} untrained"].append(_probed(blank, halves, texts.tokens))
        else:
            agreed.append(_agreement(model, texts, sizes, seed))
    counts = {name: parameters(model) for name, model in shown.items()}
    sentence = _sentence(shown, texts, fitted)
    return _finding(sizes, texts, probed, agreed, losses, counts, sentence)


def _trained(name: str, seed: int, texts: Texts, updates: int, rate: float, options: dict[str, Any]) -> Network:
    model, generator = network(name, texts.tokens, seed, **options), torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        inputs, targets = stretches(texts.train, ROWS, LENGTH, generator)
        return cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten())

    descend(model, loss, rate, updates, CLIP)
    return model.eval()


@torch.inference_mode()
def _loss(model: Network, ids: Tensor) -> float:
    return float(cross_entropy(model(ids[:, :-1])[0].flatten(0, 1), ids[:, 1:].flatten()))


@torch.inference_mode()
def _probed(model: Network, rows: Halves, tokens: int) -> Scores:
    return probed_scores([model.represent(half.ids) for half in rows], rows, tokens)


def _agreement(model: Network, texts: Texts, sizes: Sizes, seed: int) -> dict[str, tuple[float, float]]:
    draw = torch.Generator().manual_seed(seed)
    ids, _ = stretches(texts.held, sizes.occluded, CONTEXT, draw)
    return _reading.agreement(
        _reading.attended(model, ids), _reading.influence(model, ids, texts.unigrams, sizes.draws, draw)
    )


@torch.inference_mode()
def _sentence(models: dict[str, Network], texts: Texts, fitted: Rows) -> Heat:
    """Over one sentence: probes and units of the LSTM at every step; attention and influence on its last prediction."""
    ids = texts.ids(SENTENCE)[None]
    known = models["lstm"].represent(fitted.ids)[:, FIRST:].flatten(0, 1)
    truth = fitted.facts[:, FIRST:, :2].flatten(0, 1)
    hidden = models["lstm"].represent(ids)[0]
    rows = dict(zip(('"…"', "(…)"), _reading.Probe(known, truth).read(hidden).T, strict=True))
    related = torch.corrcoef(torch.cat((known, truth), dim=1).T)[:-2, -2:].nan_to_num()
    unit = int(related[:, 0].abs().argmax())
    rows[f"h{unit}"] = (hidden[:, unit] * related[unit, 0].sign() + 1) / 2
    weights = _reading.attended(models["gpt"], ids)[..., -1, :].mean((0, 1))[0]
    moved = _reading.influence(models["gpt"], ids, texts.unigrams, 20, torch.Generator().manual_seed(0))[0]
    for name, values in (("A", weights[:-1]), ("KL", moved)):
        rows[name] = torch.cat((values / values.max(), values.new_zeros(1)))
    return Heat(
        x=("the sentence, character by character", "句子，逐个字符"),
        y=(
            '"…", (…): probes of the LSTM; h: its unit most related to "…"; A, KL: attention of GPT and influence on '
            "its last prediction (largest: 1)",
            '"…"、(…)：LSTM 的探针；h：与 "…" 最相关的单元；A、KL：GPT 对最后一个预测的注意力与影响（最大为 1）',
        ),
        columns=list(SENTENCE),
        rows=list(rows),
        values=[[round(float(value), 3) for value in row] for row in rows.values()],
        title=("One sentence, time line and attention", "同一个句子：时间线与注意力"),
        range=(0.0, 1.0),
    )


def _finding(
    sizes: Sizes,
    texts: Texts,
    probed: dict[str, list[Scores]],
    agreed: list[dict[str, tuple[float, float]]],
    losses: dict[str, list[float]],
    counts: dict[str, int],
    sentence: Heat,
) -> Finding:
    tables = {name: {key: [one[key] for one in scores] for key in scores[0]} for name, scores in probed.items()}
    numbers = [_number(name, key, values) for name, table in tables.items() for key, values in table.items()]
    asked = [(name, key) for name in RECURRENT for key in (f"lag {LAG}", "quoted")]
    gains = [_less(name, key, "input", tables) for name, key in asked]
    learned = [_less(name, key, f"{name} untrained", tables) for name, key in asked]
    attention = [_agreed(name, n, [one[name][n] for one in agreed]) for n in (0, 1) for name in _reading.READINGS]
    beyond = [_beyond(n, [one["mean"][n] - one["near"][n] for one in agreed]) for n in (0, 1)]
    judged = [*((one, CLEAR) for one in gains), *((one, 0.0) for one in beyond)]
    found, conditions = _summary(tables, agreed), _conditions.told(judged)
    return Finding(
        verdict=_conditions.verdict(judged),
        summary=(f"{found[0]} {conditions[0]}", f"{found[1]}{conditions[1]}"),
        protocol=_protocol(sizes, texts, counts, losses),
        numbers=[*numbers, *gains, *learned, *attention, *beyond],
        figure=_figure(tables, agreed, sentence),
        caption=(
            "What linear probes read from the state, how well attention agrees with influence (95 % intervals over "
            "seeds), and both on one sentence",
            "线性探针从状态中读出的内容，注意力与影响的一致程度（各种子的 95 % 置信区间），以及两者在同一个句子上",
        ),
        data={SAMPLE: texts.digest},
    )


def _quantity(key: str) -> Pair:
    if key == "column":
        return ("column of the line (R²)", "行内的列（R²）")
    if key in OPEN:
        return (f"{OPEN[key][0]} (balanced accuracy)", f"{OPEN[key][1]}（平衡准确率）")
    lag = key.split()[1]
    return (f"character at lag {lag} (accuracy)", f"滞后 {lag} 步的字符（准确率）")


def _number(name: str, key: str, values: list[float]) -> Measured:
    title, quantity = FEATURES[name], _quantity(key)
    claimed = ("readable", "可读") if name in RECURRENT and key in (f"lag {LAG}", "quoted") else ("", "")
    bounds = (None, 1.0) if key == "column" else (0.0, 1.0)
    return measured((f"{quantity[0]}, {title[0]}", f"{quantity[1]}，{title[1]}"), values, claimed, bounds=bounds)


def _less(name: str, key: str, other: str, tables: Tables) -> Measured:
    """What one probe reads less what another reads; that of the input alone has no seed."""
    quantity, (one, two) = _quantity(key), (FEATURES[name], FEATURES[other])
    values = np.subtract(tables[name][key], tables[other][key])
    claimed = (f"above {CLEAR:g}", f"大于 {CLEAR:g}") if other == "input" else ("", "")
    return measured((f"{quantity[0]}, {one[0]} less {two[0]}", f"{quantity[1]}，{one[1]}减{two[1]}"), values, claimed)


def _agreed(name: str, n: int, values: list[float]) -> Measured:
    title, kind = _reading.READINGS[name], MEASURES[n]
    label = (f"{kind[0]} with influence, {title[0]}", f"与影响的{kind[1]}，{title[1]}")
    claimed = ("shows the focus", "显示关注点") if name == "mean" else ("", "")
    return measured(label, values, claimed, bounds=BOUNDS[n])


def _beyond(n: int, values: list[float]) -> Measured:
    label = (f"{MEASURES[n][0]}, attention less nearness alone", f"{MEASURES[n][1]}，注意力减仅按远近")
    return measured(label, values, ("above 0", "大于 0"))


def _figure(tables: Tables, agreed: list[dict[str, tuple[float, float]]], sentence: Heat) -> list[Panel]:
    lagged = {name: [table[f"lag {lag}"] for lag in LAGS] for name, table in tables.items() if name != "window"}
    return [
        sentence,
        Lines(
            x=("steps ago", "之前的步数"),
            y=("characters read by a linear probe (share)", "线性探针读出的字符（比例）"),
            curves=[curve(FEATURES[name], LAGS, table, bounds=(0, 1)) for name, table in lagged.items()],
            log_x=True,
            ticks=[float(lag) for lag in LAGS],
            from_zero=True,
        ),
        Bars(
            x=("inside a quotation: balanced accuracy of the probe", "是否在引号内：探针的平衡准确率"),
            groups=list(FEATURES.values()),
            series=[_bars(OPEN["quoted"], [table["quoted"] for table in tables.values()], (0.0, 1.0))],
            levels=[Level(("chance", "随机"), 0.5)],
        ),
        Bars(
            x=("agreement with influence (1: complete)", "与影响的一致程度（1：完全一致）"),
            groups=list(_reading.READINGS.values()),
            series=[
                _bars(title, [[one[name][n] for one in agreed] for name in _reading.READINGS], BOUNDS[n])
                for n, title in enumerate(MEASURES)
            ],
            levels=[Level(("chance of the same largest", "最大处相同的随机水平"), 1 / (CONTEXT - 1))],
        ),
    ]


def _bars(name: Pair, table: list[list[float]], bounds: tuple[float, float]) -> BarSeries:
    found = [measured(name, values, bounds=bounds) for values in table]
    low, high = ([one.value if end is None else end for one, end in zip(found, ends, strict=True)]
                 for ends in ([one.low for one in found], [one.high for one in found]))  # fmt: skip
    return BarSeries(name, [one.value for one in found], low, high)


def _summary(tables: Tables, agreed: list[dict[str, tuple[float, float]]]) -> Pair:
    def told(key: str) -> str:
        names = ("rnn", "lstm", "rnn untrained", "lstm untrained", "window", "input")
        return " / ".join(short(float(np.mean(tables[name][key])), 3) for name in names)

    def shares(n: int) -> tuple[str, str]:
        mean, near = (short(float(np.mean([one[name][n] for one in agreed])), 3) for name in ("mean", "near"))
        return mean, near

    def change(name: str) -> str:
        key = f"lag {LAG}"
        return fixed(float(np.mean(tables[name][key]) - np.mean(tables[f"{name} untrained"][key])), 3, sign=True)

    order, top, changed = shares(0), shares(1), [change(name) for name in RECURRENT]
    return (
        f"Linear probes of RNN / LSTM / untrained RNN / untrained LSTM / the last {WINDOW} characters / the input "
        f"alone: character {LAG} steps ago {told(f'lag {LAG}')}; 32 steps ago {told('lag 32')}; inside a quotation "
        f"{told('quoted')} and inside brackets {told('bracketed')} (chance 0.5). From untrained to trained, the "
        f"accuracy at {LAG} steps changes by {changed[0]} (RNN) and {changed[1]} (LSTM). "
        f"Attention (mean of all heads) has a rank correlation of {order[0]} with influence (nearness alone: "
        f"{order[1]}), and its largest weight is on the most influential character in a share of {top[0]} (nearness "
        f"alone: {top[1]}, chance {short(1 / (CONTEXT - 1), 2)}).",
        f"RNN / LSTM / 未训练的 RNN / 未训练的 LSTM / 最近 {WINDOW} 个字符 / 仅输入 的线性探针：{LAG} 步之前的字符 "
        f"{told(f'lag {LAG}')}；32 步之前 {told('lag 32')}；是否在引号内 {told('quoted')}，是否在括号内 "
        f"{told('bracketed')}（随机 0.5）。训练使 {LAG} 步之前的字符的读出准确率变化 {changed[0]}（RNN）和 {changed[1]}"
        f"（LSTM）。注意力（所有头的平均）与影响的秩相关为 "
        f"{order[0]}（仅按远近：{order[1]}），最大权重落在影响最大的字符上的比例为 {top[0]}（仅按远近：{top[1]}，随机 "
        f"{short(1 / (CONTEXT - 1), 2)}）。",
    )


def _protocol(sizes: Sizes, texts: Texts, counts: dict[str, int], losses: dict[str, list[float]]) -> Pair:
    sized = ", ".join(f"{MODELS[name][0]} {count:,}" for name, count in counts.items())
    lost = ", ".join(f"{MODELS[name][0]} {short(float(np.mean(values)), 3)}" for name, values in losses.items())
    rates, percent = ", ".join(f"{rate:g}" for rate in RATES), f"{100 * HELD:.0f} %"
    return (
        f"sample:{SAMPLE} by characters ({texts.tokens}), its last {percent} held out. Parameters: {sized}; GPT has "
        f"two layers of two heads. {sizes.updates:,} updates of {ROWS} rows of {LENGTH}, Adam with a rate that falls "
        f"to 0, norm clipped at {CLIP:g}, {sizes.seeds} seeds; the rate of each is the better of {rates} on one more "
        f"seed. Loss on held-out text: {lost} nats. Probes: least squares with a small penalty from the vector of a "
        f"step, on {LENGTH} characters from the beginning of each of up to {sizes.probed // 2} held-out paragraphs "
        f"(rows of short paragraphs run on into the next, so that they may overlap), from position {FIRST}, tested on "
        f"as many others; untrained models have the same random weights as the trained ones began "
        f"with. Influence: KL divergence of the prediction after {CONTEXT} held-out characters when one of those "
        f"before the last is replaced by a draw from the character frequencies, mean of {sizes.draws}, on "
        f"{sizes.occluded // 2} rows; the best head is chosen on as many others. Attention: weights of the last "
        "position, the last character left out.",
        f"sample:{SAMPLE}，以字符为单位（{texts.tokens} 种），最后 {percent} 留出。参数量：{sized}；GPT 为两层、每层两"
        f"个头。{sizes.updates:,} 次更新，每次 {ROWS} 行、每行 {LENGTH} 个字符，Adam，学习率降至 0，范数裁剪到 "
        f"{CLIP:g}，{sizes.seeds} 个种子；各模型的学习率取 {rates} 中在另一个种子上较好者。留出文本上的损失：{lost} 奈"
        f"特。探针：由某一步的向量作带小惩罚的最小二乘，在至多 {sizes.probed // 2} 个留出段落上，各取自段首起的 "
        f"{LENGTH} 个字符（段落较短时延续到下一段，因此各行可能重叠），从第 {FIRST} 个位置起，在同样多的其他段落上测"
        f"试；未训练的模型是训练前的随机权重。影响：读过 {CONTEXT} 个留出字符之后，把最后一个之前的某个字符换成按字符频"
        f"率抽取的字符，预测分布的 KL 散度，{sizes.draws} 次平均，{sizes.occluded // 2} 行；最好的头在另外同样多的行上"
        "选出。注意力：最后位置的权重，不计最后一个字符。",
    )


STUDY = Study(
    number=24,
    title=(
        "The RNN's hidden state is a readable time line; attention shows where a model looks",
        "RNN 的隐状态是可读的时间线；注意力显示模型在看哪里",
    ),
    claim=(
        "RNNs have a clear flow of time, which makes it easier to explain their decisions and to understand how "
        "information flows through a sequence. Self-attention may make explanation harder, but visualising attention "
        "gives insight into what a model focuses on.",
        "RNN 具有清晰的时间流，这使得解释其决策和理解信息如何在序列中流动变得更加容易。自我注意机制可能使解释更具挑战"
        "性，不过注意力可视化等技术可以让我们深入了解模型的关注点。",
    ),
    sources=(("000", "可解释性"),),
    rule=(
        f"Six conditions, each by its whole interval. The time line: for RNN and for LSTM, a linear probe of the state "
        f"beats one of the input alone by more than {CLEAR:g}, for the character {LAG} steps ago and for whether a "
        "quotation is open. Attention: the mean of all heads agrees with influence better than nearness alone does, in "
        "rank correlation and in the largest. It holds if all are met, under conditions if some are, and fails if the "
        "contrary of all is; otherwise it cannot be told.",
        f"共六个条件，均按整个置信区间。时间线：对 RNN 和 LSTM，状态的线性探针比仅输入的探针高出 {CLEAR:g} 以上，分别针"
        f"对 {LAG} 步之前的字符和引号是否未闭合。注意力：所有头的平均与影响的一致程度高于仅按远近，分别看秩相关和最大"
        "处。全部满足则成立，部分满足则为有条件成立，全部相反则不成立；其余无法判断。",
    ),
    remarks=(
        (
            "What a linear probe can read need not be what the model uses. An untrained network, too, keeps the last "
            "characters in a readable form: reading alone does not show that anything was learned.",
            "线性探针能读出的，未必是模型所使用的。未训练的网络也以可读的形式保留最近的字符：能读出并不说明学到了什"
            "么。",
        ),
        (
            f"A time line has to beat a list of the last characters: a probe of the last {WINDOW} alone knows every "
            f"character up to {WINDOW - 1} steps ago, and also tells quotations and brackets. It takes no part in the "
            "rule, whose yardstick is the input alone.",
            f"时间线应当胜过最近字符的列表：只用最近 {WINDOW} 个字符的探针知道 {WINDOW - 1} 步以内的每个字符，也能判断"
            "引号和括号。它不参与判定，判定时以仅输入的探针为准。",
        ),
        (
            "Learning rates are chosen on one more seed, but by the loss on the same held-out rows that probes are "
            "tested on afterwards.",
            "学习率在另一个种子上选定，但依据的是之后用来测试探针的同一批留出行上的损失。",
        ),
        (
            "Attention weights say where values are taken from, not how much they matter: a weight on a small value, "
            "or on one that the next layer ignores, changes nothing. Attention is not always explanation, and "
            "influence by replacing a character is only one definition of what matters.",
            "注意力权重说明值取自何处，不说明其重要程度：落在很小的值上、或落在后一层忽略的值上的权重什么也不改变。注"
            "意力并不总是解释；通过替换字符得到的影响也只是“重要”的一种定义。",
        ),
        (
            "The last character is left out, because it also reaches the prediction through the residual branch, where "
            "attention does not show it.",
            "最后一个字符不计，因为它还通过残差支路到达预测，注意力不显示这一路。",
        ),
        (
            "Equal parameters mean unequal widths: the vector of the RNN is the widest, and a probe of it has the most "
            "numbers to read from.",
            "参数量相同意味着宽度不同：RNN 的向量最宽，其探针可读的数也最多。",
        ),
    ),
    measure=measure,
)
