"""Attention aligns source and target

Encoder-decoders with attention are trained on data whose alignment is known. The source token that an output attends to
most is compared with the right one, and with the token that has the most influence on the output: the one whose
replacement lowers its probability most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import fixed
from seqloom.pages.plots import Bars, BarSeries, Heat, Level, Panel
from seqloom.pages.words import Pair
from seqloom.studies._aligned import DATA, LENGTH, SENTENCE, Data
from seqloom.studies._attending import REPLACED, Scores, accuracy, attention, scores
from seqloom.studies._models import parameters
from seqloom.studies._pairs import CLIP, Pairs, Training, held_out, trained
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, bars, ends, measured
from seqloom.studies._training import matched, network

SIZE = 60_000
RATES = (5e-3, 2e-3)
WRONG, AGREE, ABLE = 0.1, 0.9, 0.9  # alignment error rate; agreement with influence; accuracy of a trained model
MODELS: dict[str, tuple[Pair, str, dict[str, Any]]] = {
    "after": (("LSTM, query after the step", "LSTM，步后查询"), "seq2seq", {"cell": "lstm", "inputs": 32}),
    "before": (
        ("LSTM, query before the step", "LSTM，步前查询"),
        "seq2seq",
        {"cell": "lstm", "inputs": 32, "query": "before", "score": "additive"},
    ),
    "transformer": (
        ("Transformer", "Transformer"),
        "transformer",
        {"depth": 2, "heads": 2, "width": 32, "context": 24},
    ),
}
LABELS: dict[str, tuple[Pair, Pair]] = {  # what is measured, and what the claim says of it
    "aligned": (
        ("alignment error rate of the token attended to most", "最受关注词元的对齐错误率"),
        ("aligned", "对齐"),
    ),
    "agree": (
        ("the token attended to most has the most influence", "最受关注的词元也是影响最大的"),
        ("importance", "重要程度"),
    ),
    "able": (("accuracy", "准确率"), ("", "")),
}
CHOSEN: dict[str, Pair] = {
    "aligned": ("the token attended to most", "最受关注的词元"),
    "influential": ("the most influential token", "影响最大的词元"),
    "random": ("a random token", "随机词元"),
}
REPLACEMENTS: tuple[Pair, ...] = (CHOSEN["aligned"], CHOSEN["influential"], ("another token", "另一个词元"))
PILOT = 2  # rows for choosing a rate are others than those for the scores
SHOWN = ("words", "after")  # data and model of the alignment matrix
Key = tuple[str, str]  # data, model


@dataclass(frozen=True)
class Example:
    source: list[str]
    target: list[str]
    weights: list[list[float]]


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, rows = (2, 1, 4) if quick else (4, 700, 200)
    found: dict[Key, list[Scores]] = {}
    pilots: dict[Key, list[float]] = {}
    counts: dict[Key, int] = {}
    examples: dict[Key, Example] = {}
    keys = [(name, model) for name in DATA for model in MODELS]
    for n, (name, model) in enumerate(keys):
        data, (_, kind, given) = DATA[name], MODELS[model]
        tokens = len(data.names) + 1
        options = matched(kind, SIZE, tokens, outputs=data.outputs, **given)

        def run(seed: int, rate: float, data: Data = data, kind: str = kind, options: Any = options, n: int = n) -> Any:
            progress.update((n + seed / (seeds + 1)) / len(keys), {"doing": f"{', '.join(keys[n])}, seed {seed}"})
            how = Training(updates, rate=rate)
            return trained(kind, len(data.names) + 1, data.outputs, data.draw, how, seed, **options)

        test, other = (data.draw(rows, held_out(offset)) for offset in (0, PILOT))
        pilots[name, model] = [accuracy(run(0, rate), other) for rate in RATES]
        rate = RATES[int(np.argmax(pilots[name, model]))]
        networks = [run(seed, rate) for seed in range(1, seeds + 1)]
        found[name, model] = [scores(one, data, test) for one in networks]
        examples[name, model] = _example(networks[0], data, test)
        counts[name, model] = parameters(network(kind, tokens, 0, outputs=data.outputs, **options))
    return _finding((seeds, updates, rows), found, pilots, counts, examples)


def _example(model: Network, data: Data, pairs: Pairs) -> Example:
    return Example(
        [data.names[token] for token in pairs.sources[0]],
        [data.target(int(token)) for token in pairs.targets[0]],
        attention(model, pairs)[0].tolist(),
    )


def verdict(aligned: list[Measured], agree: list[Measured], able: list[Measured]) -> Verdict:
    """By data and model: error rates, agreement with influence, and the accuracy, below which nothing is judged."""
    trained_well = [ends(one)[0] >= ABLE for one in able]
    yes = [ends(one)[1] < WRONG for one in aligned] + [ends(one)[0] > AGREE for one in agree]
    no = [ends(one)[0] > WRONG for one in aligned] + [ends(one)[1] < AGREE for one in agree]
    judged = trained_well * 2
    if all(ok and told for ok, told in zip(yes, judged, strict=True)):
        return "holds"
    if all(not_so and told for not_so, told in zip(no, judged, strict=True)):
        return "fails"
    return "conditions" if any(ok and told for ok, told in zip(yes, judged, strict=True)) else "untold"


def _finding(
    sizes: tuple[int, int, int],
    found: dict[Key, list[Scores]],
    pilots: dict[Key, list[float]],
    counts: dict[Key, int],
    examples: dict[Key, Example],
) -> Finding:
    kinds: dict[str, dict[Key, Measured]] = {kind: {} for kind in LABELS}
    for (name, model), cells in found.items():
        end = tuple(f"{DATA[name].title[n]}, {MODELS[model][0][n]}" for n in (0, 1))
        for kind, (what, claimed) in LABELS.items():
            values = [getattr(one, kind) for one in cells]
            label = (f"{what[0]}: {end[0]}", f"{what[1]}：{end[1]}")
            kinds[kind][name, model] = measured(label, values, claimed, bounds=(0.0, 1.0))
    aligned, agree, able = (list(table.values()) for table in kinds.values())
    return Finding(
        verdict=verdict(aligned, agree, able),
        summary=_summary(kinds, found),
        protocol=_protocol(*sizes, counts),
        numbers=[*aligned, *agree, *able],
        figure=_figure(found, examples),
        caption=(
            "The attention of one model on one sentence; alignment error rates, and outputs changed by replacing a "
            "source token (95 % intervals over seeds)",
            "一个模型在一个句子上的注意力；对齐错误率，以及替换一个源词元后改变的输出（各种子的 95 % 置信区间）",
        ),
        tables=_tables(found, pilots, counts),
    )


def _bars(name: Pair, cells: list[list[float]]) -> BarSeries:
    return bars(name, [measured(name, values, bounds=(0.0, 1.0)) for values in cells])


def _figure(found: dict[Key, list[Scores]], examples: dict[Key, Example]) -> list[Panel]:
    groups = [
        (f"{DATA[name].title[0]}, {MODELS[model][0][0]}", f"{DATA[name].title[1]}，{MODELS[model][0][1]}")
        for name, model in found
    ]
    shown = examples[SHOWN]
    return [
        Heat(
            title=tuple(f"{DATA[SHOWN[0]].title[n]}, {MODELS[SHOWN[1]][0][n]}" for n in (0, 1)),  # type: ignore[arg-type]
            x=("source", "源序列"),
            y=("output", "输出"),
            columns=shown.source,
            rows=shown.target,
            values=shown.weights,
            range=(0.0, 1.0),
        ),
        Bars(
            x=("alignment error rate", "对齐错误率"),
            groups=groups,
            series=[
                _bars(title, [[getattr(one, kind) for one in cells] for cells in found.values()])
                for kind, title in CHOSEN.items()
            ],
            levels=[Level(("counts as aligned below this", "低于此视为对齐"), WRONG)],
        ),
        Bars(
            x=("share of outputs changed by replacing a source token", "替换一个源词元后改变的输出比例"),
            groups=groups,
            series=[
                _bars(title, [[one.changed[n] for one in cells] for cells in found.values()])
                for n, title in enumerate(REPLACEMENTS)
            ],
        ),
    ]


def _tables(found: dict[Key, list[Scores]], pilots: dict[Key, list[float]], counts: dict[Key, int]) -> list[Rows]:
    names = [("data", "数据"), ("model", "模型")]
    errors: list[list[Pair | float | str]] = []
    trials: list[list[Pair | float | str]] = []
    for (name, model), cells in found.items():
        start: list[Pair | float | str] = [DATA[name].title, MODELS[model][0]]
        means = [float(np.mean([getattr(one, kind) for one in cells])) for kind in CHOSEN]
        changed = np.mean([one.changed for one in cells], axis=0).tolist()
        errors.append([*start, *means, *changed])
        trials.append([*start, counts[name, model], *pilots[name, model]])
    heads = [(f"error rate: {title[0]}", f"错误率：{title[1]}") for title in CHOSEN.values()]
    heads += [(f"changed: {title[0]}", f"改变：{title[1]}") for title in REPLACEMENTS]
    rates = [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    return [
        Rows(
            (
                "Alignment error rates, and the share of outputs that change when a source token is replaced (means)",
                "对齐错误率，以及替换一个源词元后改变的输出比例（均值）",
            ),
            [*names, *heads],
            errors,
        ),
        Rows(
            ("Sizes, and accuracy of the pilot runs", "参数量与试验运行的准确率"),
            [*names, ("parameters", "参数量"), *rates],
            trials,
        ),
    ]


def _summary(kinds: dict[str, dict[Key, Measured]], found: dict[Key, list[Scores]]) -> Pair:
    def told(kind: str, name: str) -> str:
        return " / ".join(fixed(kinds[kind][name, model].value, 2) for model in MODELS)

    def changed(n: int) -> str:
        means = [float(np.mean([one.changed[n] for one in cells])) for cells in found.values()]
        return f"{fixed(min(means), 2)}–{fixed(max(means), 2)}"

    models = [" / ".join(title[n] for title, _, _ in MODELS.values()) for n in (0, 1)]
    errors, agree = (
        [
            [f"{told(kind, name)}" + f" ({one.title[0]})", f"{told(kind, name)}（{one.title[1]}）"]
            for name, one in DATA.items()
        ]
        for kind in ("aligned", "agree")
    )
    least = min(one.value for one in kinds["able"].values())
    return (
        f"Alignment error rate of the token attended to most, by {models[0]}: "
        f"{', '.join(row[0] for row in errors)}. It is also the token with the most influence for a share of "
        f"{', '.join(row[0] for row in agree)} of the outputs. Replacing it changes {changed(0)} of the outputs, "
        f"depending on data and model, replacing the most influential one {changed(1)}, another one {changed(2)}. "
        f"Accuracy is at least {fixed(least, 2)}.",
        f"最受关注词元的对齐错误率，按 {models[1]}：{'，'.join(row[1] for row in errors)}。它同时也是影响最大的词元"
        f"的输出比例：{'，'.join(row[1] for row in agree)}。替换它会改变 {changed(0)} 的输出（视数据和模型而定），替"
        f"换影响最大的词元改变 {changed(1)}，替换另一个改变 {changed(2)}。准确率至少为 {fixed(least, 2)}。",
    )


def _protocol(seeds: int, updates: int, rows: int, counts: dict[Key, int]) -> Pair:
    rates, most = ", ".join(f"{rate:g}" for rate in RATES), f"{min(counts.values()):,}–{max(counts.values()):,}"
    return (
        f"Reversal of {LENGTH} random letters; sentences of {SENTENCE} nouns and adjectives, translated word by "
        "word, an adjective before a noun changing places with it; dates such as “28 march 2026” or “march 28, 2026”"
        " to 2026-03-28, by characters. Links are known; the two digits of a month may link to any letter of its "
        "name, the zero of a one-digit day to that digit or its neighbours, dashes to nothing. Models: LSTM "
        "encoder (both directions) and decoder of one layer, with the state after a step as query and a general "
        "score (Luong et al.) or the state before it and an additive score (Bahdanau et al.); a Transformer of two "
        f"blocks on either side with two heads, weights averaged over blocks and heads. {most} parameters. "
        f"{updates:,} updates of 64 rows, Adam with a rate that falls to 0, norm clipped at {CLIP:g}, {seeds} "
        f"seeds; the rate is the better of {rates} on one more seed. Measured on {rows} new rows, with the right "
        "outputs before each step. Influence of a source token: the mean fall of the log-probability of the "
        "model's output when it is replaced by a random other one of its kind (letter, digit, noun, adjective, or "
        f"space and comma), {REPLACED} times. Accuracy is that of outputs with links. Alignment error rate: 1 - "
        "(|A∩S| + |A∩P|) / (|A| + |S|).",
        f"反转 {LENGTH} 个随机字母；{SENTENCE} 个名词和形容词组成的句子，逐词翻译，名词前的形容词与其交换位置；“28 "
        "march 2026”或“march 28, 2026”之类的日期转为 2026-03-28，以字符为单位。对齐是已知的；月份的两位数字可对应月"
        "份名称的任一字母，一位数日期的零可对应该数字或其相邻字符，连字符不对应任何字符。模型：一层 LSTM 编码器（双"
        "向）和解码器，以一步之后的状态作查询并用一般打分（Luong 等），或以一步之前的状态作查询并用加性打分（"
        f"Bahdanau 等）；两侧各两层、两个头的 Transformer，权重对层和头取平均。参数量 {most}。{updates:,} 次更新，每"
        f"次 64 行，Adam，学习率降至 0，范数裁剪到 {CLIP:g}，{seeds} 个种子；学习率取 {rates} 中在另一个种子上较好者。"
        f"在 {rows} 个新样本上测量，每步之前给出正确的输出。源词元的影响：把它换成随机的另一个同类词元（字母、数字、"
        f"名词、形容词，或空格与逗号），模型输出的对数概率的平均下降，重复 {REPLACED} 次。准确率只计有对齐的输出。对"
        "齐错误率：1 - (|A∩S| + |A∩P|) / (|A| + |S|)。",
    )


STUDY = Study(
    number=9,
    title=("Attention aligns source and target", "注意力对齐源序列与目标序列"),
    claim=(
        "Attention aligns the source sequence with the target sequence: its weights say how important each input token "
        "is to the current output, and to look at them shows what a model attends to.",
        "对齐：注意力机制应用在序列转换的源序列和目标序列之间。注意力权重表示每个输入 token 对当前输出 token 的重要"
        "程度；注意力可视化可以让我们深入了解模型的关注点。",
    ),
    sources=(("000", "可解释性"), ("001", "思想"), ("001", "计算流程")),
    rule=(
        f"For each kind of data and model, provided its accuracy is at least {ABLE:.0%}: attention aligns if the error "
        f"rate is below {WRONG:g}, and shows importance if the token attended to most is the most influential one for "
        f"more than {AGREE:.0%} of the outputs. The claim holds if both are so everywhere, fails if neither is so "
        "anywhere, and holds under conditions if some of them are so, by whole intervals; otherwise it cannot be told. "
        "Where a model is below that accuracy, nothing is so or not so.",
        f"对每种数据和模型，前提是准确率至少为 {ABLE:.0%}：若错误率低于 {WRONG:g}，则注意力对齐；若最受关注的词元在 "
        f"{AGREE:.0%} 以上的输出中也是影响最大的，则注意力显示重要程度。按整个置信区间，若处处两者皆成立则成立，处处"
        "皆不成立则不成立，部分成立则为有条件成立；其余无法判断。准确率不足的模型，两者皆不作判断。",
    ),
    remarks=(
        (
            "Attention is not always explanation. What is attended to are vectors of the encoder, and each of them "
            "knows its neighbours; a model can be right in every output and attend beside the right token. "
            "Influence is measured from outside, and is what a statement about importance should be checked by.",
            "注意力并不总是解释。被关注的是编码器的向量，而每个向量都了解其相邻词元；模型可以每个输出都正确，却关注"
            "在正确词元的旁边。影响是从外部测量的，关于重要程度的说法应以它检验。",
        ),
        (
            "Where several source tokens say the same, such as the letters of a month, neither attention nor influence "
            "has one right answer: the two may differ although both are right.",
            "若多个源词元表达同一信息（例如月份的字母），注意力和影响都没有唯一正确的答案：两者可以不同而都正确。",
        ),
        (
            "A replaced token also makes inputs that were never trained on, such as a misspelt month; influence is "
            "what the model does with these.",
            "替换词元也会产生训练中从未出现的输入，例如拼错的月份；影响反映的是模型对这些输入的反应。",
        ),
        (
            "Mean weights over blocks and heads are one way to read a Transformer; a single head may align better.",
            "对层和头取平均只是解读 Transformer 的一种方式；单个头可能对齐得更好。",
        ),
    ),
    measure=measure,
)
