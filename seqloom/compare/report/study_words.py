"""Every text of the report of a study over several data sets, in English and Chinese side by side."""

from __future__ import annotations

from functools import partial

from seqloom.pages.words import Speaker

WORDS: dict[str, tuple[str, str]] = {
    "title": ("Which sequence model for {count} data sets?", "{count} 个数据集：该选哪种序列模型？"),
    "task": ("Task", "任务"),
    "metric": ("Metric", "指标"),
    "data sets": ("Data sets", "数据集"),
    "seeds": ("Seeds", "随机种子"),
    "entries": ("Ranked entries", "参与排名的模型"),
    # the sections
    "answer": ("Conclusion", "结论"),
    "ranks": ("Mean ranks", "平均名次"),
    "scores": ("Scores on each data set", "各数据集上的分数"),
    "pairs": ("Pairwise tests", "两两检验"),
    "left out": ("Not ranked", "未参与排名"),
    "method": ("Method", "方法"),
    "commands": ("Command", "命令"),
    # the conclusion
    "best": ("Best mean rank", "平均名次最好"),
    "nothing": ("No ranking", "无法排名"),
    "figures": ("What the figures say", "数据说明了什么"),
    "leads": (
        "{name} has the best mean rank, {rank}, among {entries} entries over {sets} data sets; it comes first on "
        "{first} of them.",
        "{name} 的平均名次最好，为 {rank}（{sets} 个数据集，{entries} 个模型），在其中 {first} 个数据集上名列第一。",
    ),
    "share": (
        "{names} share the best mean rank, {rank}, among {entries} entries over {sets} data sets.",
        "{names} 并列平均名次第一，为 {rank}（{sets} 个数据集，{entries} 个模型）。",
    ),
    "alone": (
        "Only {name} finished on all {sets} data sets, so there is nothing to rank it against.",
        "只有 {name} 在全部 {sets} 个数据集上完成训练，没有可比较的对象。",
    ),
    "none finished": ("No entry finished on all data sets.", "没有模型在全部数据集上完成训练。"),
    "no test": (
        "No test is possible with {sets} data sets: even for an entry that beats another on all of them, p would be "
        "{smallest} after correction for the number of pairs ({pairs}), not below {level}. With as many entries, at "
        "least {needed} data sets are needed.",
        "{sets} 个数据集不足以检验：即使一个模型在所有数据集上都胜过另一个，按 {pairs} 对比较校正后 p 值也为 "
        "{smallest}，不低于 {level}。模型数不变时，至少需要 {needed} 个数据集。",
    ),
    "no difference": (
        "The Friedman test finds no difference between the entries ({p}), so none is called better than another.",
        "Friedman 检验未发现各模型之间有差异（{p}），因此不断言哪个更好。",
    ),
    "differ": ("The Friedman test finds that the entries differ ({p}).", "Friedman 检验表明各模型之间有差异（{p}）。"),
    "better": (
        "Over data sets, {better} is better than {worse} ({p}).",
        "从各数据集来看，{better} 优于 {worse}（{p}）。",
    ),
    "not told apart": (
        "No difference was found between {name} and {others}.",
        "未发现 {name} 与 {others} 之间有差异。",
    ),
    "scope": (
        "The data sets are the unit: this is about further data sets like these, not about any one of them; each has a "
        "report of its own, linked below.",
        "这里以数据集为单位：结论针对与它们类似的其他数据集，而不针对其中某一个；每个数据集各有报告，链接见下。",
    ),
    # the tables and the chart
    "ranks caption": ("Entries by mean rank over {sets} data sets", "按 {sets} 个数据集上的平均名次排列的模型"),
    "model": ("Model", "模型"),
    "mean rank": ("Mean rank", "平均名次"),
    "lowest is best": ("1 is best", "1 为最好"),
    "first on": ("First on", "名列第一"),
    "of data sets": ("data sets, shared places included", "数据集数，含并列"),
    "relative": ("Score relative to the best mean rank", "分数与平均名次最好者之比"),
    "relative small": (
        "geometric mean; {share} CI over data sets; {direction}",
        "几何平均；数据集间 {share} 置信区间；{direction}",
    ),
    "p": ("p against it", "与其比较的 p 值"),
    "holm": ("Holm-corrected", "Holm 校正"),
    "diagram": ("Mean ranks and groups that are not told apart", "平均名次与未能区分的组"),
    "diagram remark": (
        "Marks: mean rank. Small dots: rank on each data set. A thick bar joins entries between which no difference "
        "was found.",
        "大标记：平均名次。小点：在各数据集上的名次。粗横条连接未发现差异的模型。",
    ),
    "diagram remark untested": (
        "Marks: mean rank. Small dots: rank on each data set. No bars: the data sets are too few for a test.",
        "大标记：平均名次。小点：在各数据集上的名次。数据集太少，无法检验，因此没有横条。",
    ),
    "diagram remark apart": (
        "Marks: mean rank. Small dots: rank on each data set. No bars: every two neighbours differ.",
        "大标记：平均名次。小点：在各数据集上的名次。没有横条：每两个相邻的模型都有差异。",
    ),
    "group": ("not told apart", "未能区分"),
    "data": ("Data set", "数据集"),
    "scores caption": ("{metric} of each entry; {direction}", "各模型：{metric}；{direction}"),
    "higher": ("higher is better", "越高越好"),
    "lower": ("lower is better", "越低越好"),
    "rank": ("rank {rank}", "第 {rank} 名"),
    "recommended": ("recommended: {name}", "推荐：{name}"),
    "no recommendation": ("no recommendation", "不作推荐"),
    "pairs caption": ("Signed-rank test of every pair, Holm-corrected", "每一对的符号秩检验（Holm 校正）"),
    "pair": ("Pair", "模型对"),
    "verdict": ("Verdict", "判定"),
    "is better": ("{name} is better", "{name} 更好"),
    "no verdict": ("no difference found", "未发现差异"),
    "left out caption": ("Entries without a score on every data set", "并非在所有数据集上都有分数的模型"),
    "reason": ("Reason", "原因"),
    "why.missing": ("not part of the comparison on {data}", "未参加 {data} 上的比较"),
    "why.failed": ("failed on {data}: {error}", "在 {data} 上失败：{error}"),
    "why.unscored": ("has no such score on {data}", "在 {data} 上没有该项分数"),
    # the method
    "method ranks": (
        "Entries are ranked on each data set by their mean score over seeds; equal scores share a rank. Only entries "
        "with a score on every data set are ranked.",
        "在每个数据集上按各随机种子的平均分数排名，分数相同则名次相同。只有在所有数据集上都有分数的模型参与排名。",
    ),
    "method tests": (
        "Tests follow Demšar (2006): for three entries or more, the Friedman test at {level}; if it finds a "
        "difference, every pair is tested by the exact signed-rank test of Wilcoxon on {differences}, with Holm's "
        "correction at {level}. Seeds and test rows enter only through the mean score of each data set.",
        "检验方法依照 Demšar（2006）：有三个以上模型时先做 Friedman 检验（水平 {level}）；若有差异，再对每一对用 "
        "Wilcoxon 精确符号秩检验比较{differences}，并做 Holm 校正（水平 {level}）。"
        "随机种子与测试样本只通过各数据集的平均分数起作用。",
    ),
    "ratios": ("ratios of scores", "分数之比"),
    "differences": ("differences of scores", "分数之差"),
    "method nemenyi": (
        "For reference, the critical difference of Nemenyi at {level} is {difference} ranks. It is not used: it is "
        "approximate with few data sets, and its verdict on two entries depends on the others (Benavoli et al. 2016).",
        "供参考：Nemenyi 临界差（水平 {level}）为 {difference} 个名次。此处不采用：数据集少时它只是近似，"
        "而且对两个模型的判定取决于其他模型（Benavoli 等，2016）。",
    ),
    "method interval": (
        "The interval of a relative score is a t interval of its logarithm over data sets. It is not corrected for "
        "several entries, nor for the choice of the best mean rank on the same data.",
        "相对分数的区间是其对数在各数据集上的 t 区间，未对多个模型作校正，也未考虑最好的平均名次是用同样的数据选出的。",
    ),
    "whole command": ("The whole study", "整个研究"),
}


speaker = partial(Speaker, words=WORDS)
