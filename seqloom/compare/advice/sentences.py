"""The sentences of a recommendation, in English and Chinese side by side. Names between braces are the same in both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Pair = tuple[str, str]  # English, Chinese

SENTENCES: dict[str, Pair] = {
    # the best in quality
    "best": ("{name} is the best: {score}.", "{name} 最好：{score}。"),
    "next": ("Next is {name}, {behind}.", "其次是 {name}，{behind}。"),
    "only one that fits": ("{name} is the only model that fits: {score}.", "只有 {name} 符合条件：{score}。"),
    "only one": ("{name} is the only model to choose from: {score}.", "可选的模型只有 {name}：{score}。"),
    "clearly worse": ("Clearly worse: {others}.", "明显较差：{others}。"),
    "tied": (
        "The evidence does not separate {names} (no p below {level}): {best} scores {score}; {others}.",
        "现有证据分不出 {names} 的高下（p 均不低于 {level}）：{best} 为 {score}；{others}。",
    ),
    "cheapest": ("Of these the cheapest are: {costs}.", "其中代价最低的是：{costs}。"),
    "cheapest alone": (
        "Of these {name} is the cheapest: {costs}.",
        "其中 {name} 代价最低：{costs}。",
    ),
    "one seed": (
        "One seed cannot tell a difference from luck: {scores}. Run at least 2 seeds, better 5.",
        "只用一个随机种子无法区分差距与运气：{scores}。至少要用 2 个种子，最好 5 个。",
    ),
    # what budget would tell
    "seeds": (
        "If {name} and {best} differ as much as they seem to, about {count} seeds each would show it; this had {done}.",
        "如果 {name} 与 {best} 的差距确如所测，每个模型约需 {count} 个随机种子才能证实；本次用了 {done} 个。",
    ),
    "many seeds": (
        "If {name} and {best} differ no more than they seem to, it would take about {count} seeds each to show it "
        "({done} were run): more than such a difference is worth.",
        "如果 {name} 与 {best} 的差距只有所测的这么大，每个模型约需 {count} 个随机种子才能证实（本次用了 {done} 个）："
        "为这点差距并不值得。",
    ),
    "seeds in vain": (
        "More seeds alone would not separate {name} from {best}: their difference is too small for how much it varies "
        "from one piece of the test data to the next. More test data or a larger training budget might.",
        "只增加随机种子分不出 {name} 与 {best}：与测试数据各片段之间的波动相比，二者之差太小。"
        "更多的测试数据或更大的训练预算或许可以。",
    ),
    "identical": (
        "{name} and {best} score exactly the same; no number of seeds separates them.",
        "{name} 与 {best} 的分数完全相同，再多随机种子也分不出高下。",
    ),
    # the best in a cost
    "leads": ("{name} has {lead}: {value}.", "{name} {lead}：{value}。"),
    "leads before": (
        "{name} has {lead}: {value}; next is {second} with {other}.",
        "{name} {lead}：{value}；其次是 {second}，{other}。",
    ),
    "near": (
        "{names} are within 5 % of each other in {what} ({values}); {name} is taken for its better mean score.",
        "{names} 的{what}相差不超过 5 %（{values}）；{name} 的平均分数更好，因此选它。",
    ),
    "also best": ("It also has the best score: {score}.", "它的分数也最好：{score}。"),
    "gives up": (
        "Against the best, {best}, it gives up quality: {score}, {behind}.",
        "与最好的 {best} 相比，它在质量上有所牺牲：{score}，{behind}。",
    ),
    "gives up nothing shown": (
        "Its score, {score}, is not separated from that of the best, {best}: {behind}.",
        "它的分数是 {score}，与最好的 {best} 分不出高下：{behind}。",
    ),
    "gives up unknown": (
        "Its score is {score}; against the best, {best}, it is {behind}, and one seed cannot tell if that is luck.",
        "它的分数是 {score}，比最好的 {best} {behind}；只用一个随机种子，无法判断这是否出于运气。",
    ),
    "unmeasured": ("{what} was measured for no model that fits.", "符合条件的模型都没有测量{what}。"),
    "costs": ("It costs: {costs}.", "代价：{costs}。"),
    # against what is easily had
    "beats": (
        "It beats the best baseline, {baseline}, which scores {value}.",
        "它胜过最好的基线 {baseline}（{value}）。",
    ),
    "beats once": (
        "With its one seed it beats the best baseline, {baseline}, which scores {value}.",
        "就这一个种子而言，它胜过最好的基线 {baseline}（{value}）。",
    ),
    "beats perhaps": (
        "That it beats the best baseline, {baseline} ({value}), is not certain: its interval includes that score.",
        "最好的基线 {baseline}（{value}）落在它的区间之内，因此还不能肯定它胜过基线。",
    ),
    "no better": (
        "{who} beats the baseline {baseline}, which scores {value}: the best, {name}, scores {score}. Nothing more "
        "complex than {baseline} is worth its cost here.",
        "{who}胜过基线 {baseline}（{value}）：最好的 {name} 为 {score}。这里不值得使用比 {baseline} 更复杂的模型。",
    ),
    "beaten by baseline": (
        "It does not beat the best baseline, {baseline}, which has {value}: its own texts have {mine}.",
        "它没有胜过最好的基线 {baseline}（{value}）：它自己的文本为 {mine}。",
    ),
    "unbeaten": (
        "In {score} every model is worse than the baseline {baseline}: {best} at best, against {value}.",
        "就{score}而言，所有模型都不如基线 {baseline}：最好为 {best}，基线为 {value}。",
    ),
    "unchecked": (
        "What {name} costs was not measured: whether it meets the constraints is for you to check.",
        "没有测量 {name} 的代价：它是否符合条件，请自行检查。",
    ),
    # who is left out
    "failed": ("{name} is left out: it did not finish ({error}).", "{name} 不在考虑之列：训练没有完成（{error}）。"),
    "no score": ("{name} is left out: its score is not a number.", "{name} 不在考虑之列：它的分数不是有效的数。"),
    "below baseline": (
        "{name} is left out: it scores {value} and does not beat the baseline {baseline} ({other}).",
        "{name} 不在考虑之列：分数 {value}，没有胜过基线 {baseline}（{other}）。",
    ),
    "max_params": (
        "{name} is left out: {value} parameters, more than the {limit} allowed.",
        "{name} 不符合条件：参数量 {value}，超过上限 {limit}。",
    ),
    "max_latency_ms": (
        "{name} is left out: {value} ms per token at a context of {context}, more than the {limit} ms allowed.",
        "{name} 不符合条件：上下文为 {context} 时每词元 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "max_latency_ms.row": (
        "{name} is left out: {value} ms for a row of {context} tokens, more than the {limit} ms allowed.",
        "{name} 不符合条件：{context} 词元的样本需 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "max_latency_ms.source": (
        "{name} is left out: {value} ms for a source of {context} tokens, more than the {limit} ms allowed.",
        "{name} 不符合条件：{context} 词元的源文本需 {value} 毫秒，超过上限 {limit} 毫秒。",
    ),
    "streaming": (
        "{name} is left out: its state grows with the context, {first} at {short}, {last} at {long}; streaming needs "
        "one that does not.",
        "{name} 不符合条件：它的状态随上下文增长，上下文为 {short} 时 {first}，{long} 时 {last}；"
        "流式使用要求状态大小不变。",
    ),
    "unknown cost": (
        "{name} is left out: {what} was not measured, so {option} cannot be checked.",
        "{name} 不符合条件：没有测量{what}，无法检查 {option}。",
    ),
    "nothing finished": ("No model finished, so there is nothing to recommend.", "没有模型训练完成，无从推荐。"),
    "nothing fits": ("No model fits the constraints.", "没有模型符合条件。"),
    # what would change it
    "relax": ("With {options} {name} would fit: {score}.", "若{options}，{name} 就符合条件：{score}。"),
    "if preferred": ("If {what} mattered most: {name}, {value}.", "如果最看重{what}：{name}，{value}。"),
    "if preferred against": (
        "If {what} mattered most: {name}, {value} against {other} of {choice}.",
        "如果最看重{what}：{name}，{value}；{choice} 为 {other}。",
    ),
    "if preferred open": (
        "If {what} mattered most: no choice yet between {names}.",
        "如果最看重{what}：{names} 之间还无法取舍。",
    ),
    "in any case": (
        "Whichever matters most, quality, latency, memory or training, the choice stays {name}.",
        "无论最看重质量、延迟、内存还是训练速度，都选 {name}。",
    ),
    "excluded": (
        "The constraints left out the model with the best score: {name}, {score}.",
        "分数最好的模型因不符合条件而落选：{name}，{score}。",
    ),
    "crossing": (
        "The context matters: at {short} {first} has {lead} ({value} against {same} of {second}), at {long} {second} "
        "({other} against {later}).",
        "结论与上下文长度有关：上下文为 {short} 时 {first} {lead}（{value}，{second} 为 {same}），"
        "{long} 时则是 {second}（{other}，{first} 为 {later}）。",
    ),
    "grows": (
        "The state of {name} grows with the context, {first} at {short}, {last} at {long}: for much longer contexts "
        "consider {other}, whose state stays at {constant}.",
        "{name} 的状态随上下文增长，上下文为 {short} 时 {first}，{long} 时 {last}：若上下文更长得多，"
        "可考虑状态始终为 {constant} 的 {other}。",
    ),
    "more budget": (
        "A larger training budget or more training data may change this.",
        "更大的训练预算或更多的训练数据可能改变这一结论。",
    ),
    # parts of sentences
    "score": (
        "{value} ({share} interval {low} to {high}, {seeds} seeds)",
        "{value}（{share} 区间 {low} 至 {high}，{seeds} 个种子）",
    ),
    "score of one seed": ("{value} (one seed)", "{value}（一个种子）"),
    "with unit": ("{value} {unit}", "{value} {unit}"),
    "with title": ("{title} {value}", "{title} {value}"),
    "behind": (
        "{value} behind ({share} interval {low} to {high}, {p})",
        "落后 {value}（{share} 区间 {low} 至 {high}，{p}）",
    ),
    "behind by one seed": ("{value} behind", "落后 {value}"),
    "name behind": ("{name} is {behind}", "{name} {behind}"),
    "parameters": ("{value} parameters", "参数量 {value}"),
    "latency": ("{value} ms", "{value} 毫秒"),
    "memory": ("{value}", "{value}"),
    "training": ("{value} tokens/s", "{value} 词元/秒"),
    "latency at": ("{value} ms per token at a context of {context}", "上下文为 {context} 时每词元 {value} 毫秒"),
    "memory at": ("{value} of state at a context of {context}", "上下文为 {context} 时状态 {value}"),
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
    "training at": ("{value} tokens/s in training", "训练时 {value} 词元/秒"),
    "reading at": (
        "{latency} per token and {memory} of state at a context of {context}",
        "上下文为 {context} 时每词元 {latency}、状态 {memory}",
    ),
    "peak": ("{value} at the peak of training", "训练时内存峰值 {value}"),
    "named": ("{name} ({value})", "{name}（{value}）"),
    "option": ("--{option} {value}", "改为 --{option} {value}"),
    "no option": ("no --{option}", "不加 --{option}"),
    "and": (" and ", "并"),
    "nobody": ("No model", "没有一个模型"),
    "nobody that fits": ("No model that fits", "符合条件的模型没有一个"),
    "what.quality": ("quality", "质量"),
    "what.latency": ("latency", "延迟"),
    "what.memory": ("memory", "内存"),
    "what.training": ("training speed", "训练速度"),
    "what.state": ("the size of the state", "状态的大小"),
    "lead.latency": ("the lowest latency", "的延迟最低"),
    "lead.memory": ("the smallest state", "的状态最小"),
    "lead.training": ("the highest speed", "的速度最快"),
}


def say(key: str, **values: Any) -> Pair:
    """The sentence in both languages; a value that is a pair is itself in both."""
    english, chinese = (
        {name: value[column] if isinstance(value, tuple) else value for name, value in values.items()}
        for column in (0, 1)
    )
    return SENTENCES[key][0].format(**english), SENTENCES[key][1].format(**chinese)


def say_by(what: str, key: str, **values: Any) -> Pair:
    """The sentence for this unit of latency, where it differs."""
    return say(f"{key}.{what}" if f"{key}.{what}" in SENTENCES else key, **values)


def term(group: str, name: str) -> Pair:
    """The words for a name that results use; the name itself when it has none."""
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
