"""Every text of a comparison of retrievers, in English and Chinese side by side."""

from __future__ import annotations

from seqloom.pages.words import Pair

WORDS: dict[str, Pair] = {
    "title": ("Which retriever for {data}?", "{data} 该用哪种检索？"),
    "answer": ("Recommendation", "推荐"),
    "results": ("Results", "结果"),
    "chart": ("nDCG@10 of each retriever", "各检索方式的 nDCG@10"),
    "chart remark": (
        "Higher is better. Bars: 95 % confidence interval of the mean over queries.",
        "越高越好。横线：对查询取平均的 95 % 置信区间。",
    ),
    "reasons": ("Reasons", "理由"),
    "method": ("Method", "方法"),
    "commands": ("Command to reproduce the results", "复现命令"),
    "why": ("Why", "为什么"),
    "recommended": ("Recommended", "推荐使用"),
    "recommended for now": ("Recommended, but not certain", "推荐使用，但尚不确定"),
    "use": ("Use the recommended retriever", "使用推荐的检索方式"),
    "use in Python": (
        "Use the recommended retriever, in Python: `seqloom ask` searches this index by words and by vectors",
        "在 Python 中使用推荐的检索方式：`seqloom ask` 对这个索引同时按词和按向量检索",
    ),
    "reproduce": ("The comparison", "本次比较"),
    # the head of the page
    "documents": ("Documents", "文档"),
    "chunks": ("Chunks", "块"),
    "queries": ("Judged queries", "有标注的查询"),
    "entries": ("Retrievers", "检索方式"),
    # the table
    "caption": ("Scores of the ranked documents; higher is better", "文档排序的分数，越高越好"),
    "retriever": ("Retriever", "检索方式"),
    "rank": ("rank", "名次"),
    "interval": ("95 % CI", "95 % 置信区间"),
    "difference": ("Behind (+) or ahead (−)", "落后（+）或领先（−）"),
    "all together": (
        "of the best other one, nDCG@10, {share} CI for all together",
        "相对其余最佳的 nDCG@10，{share} 联合置信区间",
    ),
    "recall@10": ("Recall@10", "召回率@10"),
    "recall@100": ("Recall@100", "召回率@100"),
    "mrr@10": ("MRR@10", "MRR@10"),
    "time": ("Time per query", "每次查询用时"),
    "median": ("median", "中位数"),
    "size": ("Index on disk", "索引占用磁盘"),
    "no encoder": ("needs no encoder", "不需要编码器"),
    # the answer
    "lead": ("{name} has the best nDCG@10, {score}", "{name} 的 nDCG@10 最好：{score}"),
    "score": ("{mean} (95 % CI {low} to {high})", "{mean}（95 % 置信区间 {low} 至 {high}）"),
    "headline.alone": ("{lead}; it is the only retriever here.", "{lead}；这里只有它一种检索方式。"),
    "headline.few": (
        "{lead}, but {queries} judged queries are too few to tell retrievers apart; give at least {fewest}.",
        "{lead}；但只有 {queries} 个有标注的查询，不足以区分各种检索方式，请至少给出 {fewest} 个。",
    ),
    "headline.worse": (
        "{lead}, and significantly worse: {names}.",
        "{lead}；显著较差的有 {names}。",
    ),
    "headline.equivalent": (
        "{lead}; equivalent, within the margin of {margin}: {names}.",
        "{lead}；在 {margin} 的容差内与之等价的有 {names}。",
    ),
    "headline.unclear": (
        "{lead}, but there is not enough evidence to tell it from {names}.",
        "{lead}；但现有证据不足以区分它与 {names}。",
    ),
    # the reasons
    "behind": (
        "{name} is {difference} behind (CI {low} to {high})",
        "{name} 落后 {difference}（置信区间 {low} 至 {high}）",
    ),
    "reason.worse": ("Significantly worse: {others}.", "显著较差：{others}。"),
    "reason.equivalent": (
        "Equivalent, within the margin of {margin}: {others}.",
        "在 {margin} 的容差内等价：{others}。",
    ),
    "reason.unclear": ("Not enough evidence: {others}.", "证据不足：{others}。"),
    "needed": (
        "If {name} and {best} really differ by as much as measured, about {count} judged queries like these are needed "
        "to show it ({queries} were used).",
        "如果 {name} 与 {best} 的真实差异与测得的一样大，约需 {count} 个同类的有标注查询才能证实"
        "（本次用了 {queries} 个）。",
    ),
    "hopeless": (
        "{name} and {best} differ so little that more than a hundred times as many judged queries would be needed to "
        "show it ({queries} were used).",
        "{name} 与 {best} 的差异极小，需要一百倍以上的有标注查询才能证实（本次用了 {queries} 个）。",
    ),
    "cheaper": (
        "{name} is not shown to be worse and takes {theirs} ms per query, {best} {own} ms.",
        "{name} 未被证实较差，每次查询用时 {theirs} 毫秒；{best} 为 {own} 毫秒。",
    ),
    "cheaper without encoder": (
        "{name} is not shown to be worse, needs no encoder and takes {theirs} ms per query, {best} {own} ms.",
        "{name} 未被证实较差，不需要编码器，每次查询用时 {theirs} 毫秒；{best} 为 {own} 毫秒。",
    ),
    "seen": (
        "Encoders: {names}. If queries or documents like these were among what one was trained on, "
        "its scores are too good; nothing here can tell.",
        "用到的编码器：{names}。如果某个编码器的训练数据里有这些查询或文档，它的分数会偏高；这一点在此无从得知。",
    ),
    "list": (", ", "、"),
    "and": ("{first} and {last}", "{first} 和 {last}"),
    # the method
    "how.scored": (
        "{queries} queries that have a relevant document among those judged; a document ranks where its best chunk "
        "does, and the best 100 documents count. nDCG@10 with linear gains, as trec_eval has it.",
        "{queries} 个至少有一篇相关文档的查询；文档按其最好的块排名，计前 100 篇。"
        "nDCG@10 用线性增益，与 trec_eval 相同。",
    ),
    "how.left out": (
        "Judged documents that the folder does not have: {absent}; judged queries that were left out: {unjudged}.",
        "文件夹中没有的已标注文档：{absent}；未计入的已标注查询：{unjudged}。",
    ),
    "how.judged": (
        "Every retriever is compared with the best of the others on the same queries, by {draws} bootstrap draws; the "
        "intervals of these differences hold for all pairs together with {share} confidence (Sidak). “Worse”: another "
        "one is better by more than chance. “Equivalent”: behind by less than the margin of {margin}, if at all. “Not "
        "enough evidence”: neither is shown.",
        "每种检索方式都在相同的查询上与其余中最好的相比（自助抽样 {draws} 次）；这些差异的区间对所有配对"
        "同时成立的置信度为 {share}（Sidak 校正）。“较差”：另有一种更好，且差异超出偶然。"
        "“等价”：即使落后，也小于 {margin} 的容差。“证据不足”：两者均未得到证实。",
    ),
    "how.tuned": (
        "Nothing is trained or tuned on these queries. If you choose by this table, the score of the winner is "
        "slightly too good: it won on these very queries.",
        "没有用这些查询训练或调参。若据此表选择，胜出者的分数会略微偏高，因为它正是在这些查询上胜出的。",
    ),
    "how.measured": (
        "Time: the median of {timed} searches for 10 passages, including the encoder, in one process on this "
        "machine. Size: what the index takes on disk without the encoder; dense and hybrid search share one index.",
        "用时：{timed} 次检索 10 个块的中位数，包括编码器，在本机单进程测量。"
        "大小：索引占用的磁盘空间，不含编码器；dense 与 hybrid 共用一个索引。",
    ),
}
