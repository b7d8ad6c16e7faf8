"""The sentences of a recommendation, in English and Chinese side by side, with the same placeholders in both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Pair = tuple[str, str]  # English, Chinese

SENTENCES: dict[str, Pair] = {
    # the answer in one sentence
    "headline.worse": (
        "{lead}, and every other model is significantly worse.",
        "{lead}；其他模型都显著较差。",
    ),
    "headline.worse one": (
        "{lead}, and {names} is significantly worse.",
        "{lead}；{names} 显著较差。",
    ),
    "headline.equivalent": (
        "{lead}; equivalent, within the margin of {margin}: {names}.",
        "{lead}；在 {margin} 的容差内与之等价的有 {names}。",
    ),
    "headline.unclear": (
        "{lead}, but there is not enough evidence to tell it from {names}.",
        "{lead}；但现有证据不足以区分它与 {names}。",
    ),
    "lead": ("{name} has the best score, {score}", "{name} 的分数最好：{score}"),
    "lead of those that fit": (
        "Of the models that meet the constraints, {name} has the best score, {score}",
        "在满足约束条件的模型中，{name} 的分数最好：{score}",
    ),
    # the best in quality
    "best": ("{name} has the best score: {score}.", "{name} 的分数最好：{score}。"),
    "best that fits": (
        "{name} has the best score of the models that meet the constraints: {score}.",
        "在满足约束条件的模型中，{name} 的分数最好：{score}。",
    ),
    "only one that fits": (
        "{name} is the only model that meets the constraints: {score}.",
        "只有 {name} 满足约束条件：{score}。",
    ),
    "only one": ("{name} is the only model to choose from: {score}.", "可选的模型只有 {name}：{score}。"),
    "open": (
        "There is not enough evidence to tell it from {names}: {others}.",
        "现有证据不足以区分它与 {names}：{others}。",
    ),
    "equivalent": (
        "Equivalent, within the margin of {margin}: {others}.",
        "在 {margin} 的容差内等价：{others}。",
    ),
    "worse": ("Significantly worse: {others}.", "显著较差：{others}。"),
    "trained on": (
        "Every trained model read {tokens} tokens, {epochs} epochs of the training set; fitted to all of it: {names}.",
        "经训练的模型各读取 {tokens} 词元，即训练集的 {epochs} 轮；{names} 则用整个训练集拟合。",
    ),
    "pretrained": (
        "Started from weights that others trained: {names}. Whether the test data was among what they were trained on "
        "is not known; if it was, these scores are too good.",
        "从他人训练好的权重出发：{names}。无法得知其训练数据是否包含本测试集；若包含，则这些分数偏高。",
    ),
    "under one epoch": (
        "{names} did not read the training set once; a larger budget might change this.",
        "{names} 未能读完一遍训练集；更大的预算可能改变这一结论。",
    ),
    "cheapest": ("Of {names}, the cheapest: {costs}.", "在 {names} 中，开销最低的是：{costs}。"),
    "cheapest alone": ("Of {names}, {name} is the cheapest: {costs}.", "在 {names} 中，{name} 的开销最低：{costs}。"),
    "one seed": (
        "A single seed cannot separate a real difference from chance: {scores}. Run at least 2 seeds, preferably 5.",
        "只用一个随机种子无法区分真实差异与偶然波动：{scores}。请至少使用 2 个随机种子，最好 5 个。",
    ),
    "one segment": (
        "A single test segment cannot separate a real difference from chance: {scores}. More test data is needed.",
        "只有一个测试片段，无法区分真实差异与偶然波动：{scores}。需要更多测试数据。",
    ),
    # what would settle a tie
    "seeds": (
        "If {name} and {best} really differ by as much as measured, about {count} seeds are needed to show it "
        "({done} were run{time}).",
        "如果 {name} 与 {best} 的真实差异与测得的一样大，约需 {count} 个随机种子才能证实（本次用了 {done} 个{time}）。",
    ),
    "many seeds": (
        "If {name} and {best} really differ by as much as measured, about {count} seeds are needed to show it "
        "({done} were run{time}), which such a small difference is hardly worth.",
        "如果 {name} 与 {best} 的真实差异与测得的一样大，约需 {count} 个随机种子才能证实"
        "（本次用了 {done} 个{time}），为这样小的差异恐怕不值得。",
    ),
    "more training": ("; about {time} more training", "，还需训练约 {time}"),
    "seeds in vain.pieces": (
        "More seeds alone would not separate {name} from {best}: their difference is too small compared with its "
        "variation across the test data. More test data or a larger training budget might.",
        "仅增加随机种子无法区分 {name} 与 {best}：与测试数据各片段之间的波动相比，二者的差异太小。"
        "增加测试数据或训练预算或许可以。",
    ),
    "seeds in vain.tuning": (
        "More seeds alone would not separate {name} from {best}: their difference is too small compared with the luck "
        "of tuning. More trials might.",
        "仅增加随机种子无法区分 {name} 与 {best}：与调参的偶然性相比，二者的差异太小。增加调参试验或许可以。",
    ),
    "seeds in vain.difference": (
        "{name} and {best} have the same mean score: there is no difference for more seeds to confirm.",
        "{name} 与 {best} 的平均分数相同，没有可供更多随机种子证实的差异。",
    ),
    "seeds in vain.fixed": (
        "{name} and {best} depend on no seed: only more test data could separate them.",
        "{name} 与 {best} 都不依赖随机种子，只有更多的测试数据才能区分它们。",
    ),
    # the best in a cost
    "leads": ("Among the candidates, {name} has {lead}: {value}.", "候选模型中 {name} {lead}：{value}。"),
    "leads before": (
        "Among the candidates, {name} has {lead}: {value}; next is {second} with {other}.",
        "候选模型中 {name} {lead}：{value}；其次是 {second}，{other}。",
    ),
    "near": (
        "{names} are within 5 % of each other in {what} ({values}); none of them has a better mean score than {name}.",
        "{names} 的{what}相差不超过 5 %（{values}）；其中没有平均分数优于 {name} 的。",
    ),
    "near by peak": (
        "{names} are within 5 % of each other in state size ({values}); of these, {name} needs the least memory in "
        "training, or is within 5 % of it: {peak}.",
        "{names} 的状态大小相差不超过 5 %（{values}）；其中 {name} 训练时所需内存最少，或与最少者相差不超过 5 %："
        "{peak}。",
    ),
    "also best": ("No alternative has a better score: {score}.", "其他可选模型的分数都不优于它：{score}。"),
    "gives up": (
        "Its score is worse than that of {best}, the best alternative: {score}, {behind}.",
        "它的分数不如其他可选模型中最好的 {best}：{score}，{behind}。",
    ),
    "gives up little": (
        "Its score is equivalent to that of {best}, the best alternative, within the margin of {margin}: {score}, "
        "{behind}.",
        "在 {margin} 的容差内，它的分数与其他可选模型中最好的 {best} 等价：{score}，{behind}。",
    ),
    "gives up unknown": (
        "Whether its score is worse than that of {best}, the best alternative, cannot be told: {score}, {behind}.",
        "无法判断它的分数是否不如其他可选模型中最好的 {best}：{score}，{behind}。",
    ),
    "unmeasured": (
        "No {what} was measured by which the candidates could be compared.",
        "没有可用于比较候选模型的{what}测量值。",
    ),
    "costs": ("Cost: {costs}.", "开销：{costs}。"),
    # against the baselines
    "beats": (
        "It beats the best baseline, {baseline}, which scores {value}.",
        "它胜过最好的基线“{baseline}”（{value}）。",
    ),
    "beats once": (
        "It scores better than the best baseline, {baseline} ({value}), but a single run cannot tell whether this is "
        "chance.",
        "它的分数优于最好的基线“{baseline}”（{value}），但仅凭一次运行无法排除偶然。",
    ),
    "beats perhaps": (
        "It is not certain that it beats the best baseline, {baseline} ({value}): that score lies within its "
        "confidence interval.",
        "尚不能确定它胜过最好的基线“{baseline}”（{value}）：该分数落在它的置信区间之内。",
    ),
    "beats.paired": (
        "It beats the best baseline, {baseline} ({value}): it is {lead}.",
        "它胜过最好的基线“{baseline}”（{value}）：{lead}。",
    ),
    "beats perhaps.paired": (
        "It is not certain that it beats the best baseline, {baseline} ({value}): it is {lead}.",
        "尚不能确定它胜过最好的基线“{baseline}”（{value}）：{lead}。",
    ),
    "no better": (
        "{who} beats the baseline {baseline}, which scores {value}; the best is {name}: {score}.",
        "{who}胜过基线“{baseline}”（{value}）；最好的是 {name}：{score}。",
    ),
    "fit baseline": (
        "{baseline} can be fitted as a model of its own: {command}",
        "“{baseline}”可以作为模型单独训练：{command}",
    ),
    "usable baseline": (
        "Of the baselines that are saved as a model, {baseline} is the best: {value}.",
        "在保存为模型的基线中，“{baseline}”最好：{value}。",
    ),
    "beaten by baseline": (
        "It does not beat the best baseline, {baseline} ({value}); its own result is {mine}.",
        "它没有胜过最好的基线“{baseline}”（{value}）；它自己的结果：{mine}。",
    ),
    "unbeaten": (
        "On {score}, every candidate is worse than the baseline {baseline}: {best} at best, compared with {value}.",
        "在{score}上，所有候选模型都不如基线“{baseline}”（最好：{best}；基线：{value}）。",
    ),
    "unchecked": (
        "The cost of {name} was not measured; check for yourself whether it meets the constraints.",
        "未测量 {name} 的开销，请自行确认它是否满足约束条件。",
    ),
    # excluded models
    "failed": ("{name} is excluded: it did not finish ({error}).", "{name} 已排除：训练未完成（{error}）。"),
    "no score": ("{name} is excluded: its score is not a finite number.", "{name} 已排除：它的分数不是有限数值。"),
    "below baseline": (
        "{name} is excluded: it does not beat the baseline {baseline} ({value}, compared with {other}).",
        "{name} 已排除：没有胜过基线“{baseline}”（{value}，基线为 {other}）。",
    ),
    "below fixed": (
        "{name} is excluded: {other}, which needs no training, has a better mean score ({better}, compared with "
        "{value}).",
        "{name} 已排除：无需训练的 {other} 平均分数更好（{better}，{name} 为 {value}）。",
    ),
    "max_params": (
        "{name} is excluded: {value} parameters, above the limit of {limit}.",
        "{name} 已排除：参数量 {value}，超过上限 {limit}。",
    ),
    "max_params.stored": (
        "{name} is excluded: {value} stored values, above the limit of {limit}.",
        "{name} 已排除：存储 {value} 个数值，超过上限 {limit}。",
    ),
    "max_latency_ms": (
        "{name} is excluded: {value} ms per token at context length {context}, above the limit of {limit} ms.",
        "{name} 已排除：上下文长度 {context} 时每词元 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "max_latency_ms.row": (
        "{name} is excluded: {value} ms for a row of {context} tokens, above the limit of {limit} ms.",
        "{name} 已排除：处理 {context} 词元的样本需 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "max_latency_ms.source": (
        "{name} is excluded: {value} ms for a source of {context} tokens, above the limit of {limit} ms.",
        "{name} 已排除：处理 {context} 词元的源文本需 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "streaming": (
        "{name} is excluded: its state grows with the context, from {first} at {short} tokens to {last} at {long}; "
        "streaming requires a state of constant size.",
        "{name} 已排除：它的状态随上下文增长，从 {short} 词元时的 {first} 增至 {long} 词元时的 {last}；"
        "流式推理要求状态大小恒定。",
    ),
    "unknown cost": (
        "{name} is excluded: its {what} was not measured, so {option} cannot be checked.",
        "{name} 已排除：未测量{what}，无法检查 {option}。",
    ),
    "nothing finished": (
        "No model finished training, so there is nothing to recommend.",
        "没有模型完成训练，因此无从推荐。",
    ),
    "nothing fits": ("No model meets the constraints.", "没有模型满足约束条件。"),
    # what would change the recommendation
    "relax": ("With {options}, {name} would qualify: {score}.", "若{options}，{name} 即满足条件：{score}。"),
    "if preferred": ("If {what} matters most: {name}, {value}.", "若最看重{what}：选 {name}，{value}。"),
    "if preferred against": (
        "If {what} matters most: {name}, {value}, compared with {other} for {choice}.",
        "若最看重{what}：选 {name}，{value}；{choice} 为 {other}。",
    ),
    "in any case": (
        "The choice is {name} whether quality, latency, memory or training speed matters most.",
        "无论最看重质量、延迟、内存还是训练速度，都选 {name}。",
    ),
    "excluded": (
        "The constraints exclude the model with the best score: {name}, {score}.",
        "分数最好的模型因不满足约束条件而被排除：{name}，{score}。",
    ),
    "crossing": (
        "The context length matters: at {short} tokens, {first} has {lead} ({value}, compared with {same} for "
        "{second}); at {long}, {second} does ({other}, compared with {later} for {first}).",
        "结论取决于上下文长度：{short} 词元时 {first} {lead}（{value}，{second} 为 {same}），"
        "{long} 词元时则是 {second}（{other}，{first} 为 {later}）。",
    ),
    "crossing.row": (
        "The row length matters: with {short} tokens, {first} has {lead} ({value}, compared with {same} for "
        "{second}); with {long}, {second} does ({other}, compared with {later} for {first}).",
        "结论取决于样本长度：{short} 词元时 {first} {lead}（{value}，{second} 为 {same}），"
        "{long} 词元时则是 {second}（{other}，{first} 为 {later}）。",
    ),
    "crossing.source": (
        "The source length matters: with {short} tokens, {first} has {lead} ({value}, compared with {same} for "
        "{second}); with {long}, {second} does ({other}, compared with {later} for {first}).",
        "结论取决于源文本长度：{short} 词元时 {first} {lead}（{value}，{second} 为 {same}），"
        "{long} 词元时则是 {second}（{other}，{first} 为 {later}）。",
    ),
    "grows": (
        "The state of {name} grows with the context, from {first} at {short} tokens to {last} at {long}: for much "
        "longer contexts, consider {other}, whose state stays at {constant}.",
        "{name} 的状态随上下文增长，从 {short} 词元时的 {first} 增至 {long} 词元时的 {last}：若上下文长得多，"
        "可考虑状态始终为 {constant} 的 {other}。",
    ),
    "more budget": (
        "A larger training budget or more training data might change this.",
        "更大的训练预算或更多的训练数据可能改变这一结论。",
    ),
    # parts of sentences
    "score": (
        "{value} ({share} CI {low} to {high}, {seeds} seeds)",
        "{value}（{share} 置信区间 {low} 至 {high}，{seeds} 个随机种子）",
    ),
    "score without seeds": ("{value} ({share} CI {low} to {high})", "{value}（{share} 置信区间 {low} 至 {high}）"),
    "score of one seed": ("{value} (one seed)", "{value}（一个随机种子）"),
    "with unit": ("{value} {unit}", "{value} {unit}"),
    "with title": ("{title} {value}", "{title} {value}"),
    "behind": (
        "{value} behind ({share} CI {low} to {high}, {p})",
        "落后 {value}（{share} 置信区间 {low} 至 {high}，{p}）",
    ),
    "behind without interval": ("{value} behind", "落后 {value}"),
    "name behind": ("{name} is {behind}", "{name} {behind}"),
    "better by": (
        "better by {gap} ({share} CI {low} to {high}, on the same test segments)",
        "好 {gap}（{share} 置信区间 {low} 至 {high}，按相同的测试片段比较）",
    ),
    "parameters": ("{value} parameters", "参数量 {value}"),
    "stored": ("{value} stored values", "存储数值 {value} 个"),
    "latency": ("{value} ms", "{value} 毫秒"),
    "memory": ("{value}", "{value}"),
    "training": ("{value} tokens/s", "{value} 词元/秒"),
    "latency at": ("{value} ms per token at context length {context}", "上下文长度 {context} 时每词元 {value} 毫秒"),
    "memory at": ("{value} of state at context length {context}", "上下文长度 {context} 时状态 {value}"),
    "latency at.row": ("{value} ms for a row of {context} tokens", "{context} 词元的样本需 {value} 毫秒"),
    "latency at.source": ("{value} ms for a source of {context} tokens", "{context} 词元的源文本需 {value} 毫秒"),
    "memory at.source": (
        "{value} of state after a source of {context} tokens",
        "读完 {context} 词元的源文本后状态 {value}",
    ),
    "reading at.source": (
        "{latency} and {memory} of state for a source of {context} tokens",
        "{context} 词元的源文本需 {latency}、状态 {memory}",
    ),
    "training at": ("{value} tokens/s in training", "训练速度 {value} 词元/秒"),
    "reading at": (
        "{latency} per token and {memory} of state at context length {context}",
        "上下文长度 {context} 时每词元 {latency}、状态 {memory}",
    ),
    "peak": ("{value} peak memory in training", "训练内存峰值 {value}"),
    "named": ("{name} ({value})", "{name}（{value}）"),
    "option": ("--{option} {value}", "改为 --{option} {value}"),
    "no option": ("no --{option}", "不加 --{option}"),
    "and": (" and ", "并"),
    "no model": ("No model", "没有模型"),
    "no other model": ("No other model", "没有其他模型"),
    "no other model that fits": ("No other model that meets the constraints", "满足约束条件的其他模型都未"),
    "no model that fits": ("No model that meets the constraints", "满足约束条件的模型都未"),
    "what.quality": ("quality", "质量"),
    "what.latency": ("latency", "延迟"),
    "what.memory": ("memory", "内存"),
    "what.training": ("training speed", "训练速度"),
    "what.state": ("state size", "状态大小"),
    "lead.latency": ("the lowest latency", "的延迟最低"),
    "lead.memory": ("the smallest state", "的状态最小"),
    "lead.training": ("the highest training speed", "的训练速度最快"),
}


def say(key: str, **values: Any) -> Pair:
    """The sentence in both languages; a value may itself be a pair."""
    english, chinese = (
        {name: value[column] if isinstance(value, tuple) else value for name, value in values.items()}
        for column in (0, 1)
    )
    return SENTENCES[key][0].format(**english), SENTENCES[key][1].format(**chinese)


def say_by(latency_unit: str, key: str, **values: Any) -> Pair:
    """The variant of a sentence for this latency unit, if there is one."""
    special = f"{key}.{latency_unit}"
    return say(special if special in SENTENCES else key, **values)


def term(group: str, name: str) -> Pair:
    """The words for a name used in results; the name itself if there are none."""
    return SENTENCES.get(f"{group}.{name}", (name, name))


def joined(parts: Iterable[Pair | str], english: str = ", ", chinese: str = "，") -> Pair:
    both = [part if isinstance(part, tuple) else (part, part) for part in parts]
    return english.join(part[0] for part in both), chinese.join(part[1] for part in both)


def listed_names(names: Iterable[str]) -> Pair:
    """`a, b and c`, `a、b 和 c`."""
    *first, last = names
    if not first:
        return last, last
    return f"{', '.join(first)} and {last}", f"{'、'.join(first)} 和 {last}"


def in_both(sentences: Iterable[Pair]) -> dict[str, list[str]]:
    sentences = list(sentences)
    return {"en": [english for english, _ in sentences], "zh": [chinese for _, chinese in sentences]}
