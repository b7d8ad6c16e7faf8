"""Every text of a diagnosis, in English and Chinese side by side."""

from __future__ import annotations

from seqloom.pages.words import Pair

WORDS: dict[str, Pair] = {
    "title": ("What these memories can and cannot do", "这些记忆能做什么，不能做什么"),
    "title.one": ("What the memory of {name} can and cannot do", "{name} 的记忆能做什么，不能做什么"),
    "models": ("Models", "模型"),
    "parameters": ("Parameters of each", "每个模型的参数量"),
    "seeds": ("Seeds", "随机种子"),
    "steps": ("Training steps, at most", "训练步数上限"),
    "answer": ("In short", "概要"),
    "results": ("Results", "结果"),
    "lengths": ("Accuracy by length and by number of pairs", "准确率随长度和对数的变化"),
    "published": ("Beside published figures", "与已发表数值对照"),
    "method": ("Method", "方法"),
    "commands": ("Command to reproduce the results", "复现命令"),
    "reproduce": ("The diagnosis", "本次诊断"),
    "each": ("What the figures say of each", "各模型的数值说明什么"),
    # sentences about a model
    "sentence": ("{name}: {parts}.", "{name}：{parts}。"),
    "sentence.solved": ("solves {problems}", "解决了{problems}"),
    "sentence.trained": (
        "solves only at the trained lengths: {problems}",
        "只在训练过的长度上解决了{problems}",
    ),
    "sentence.part": ("is partly right on {problems}", "部分答对{problems}"),
    "sentence.guess": ("is near guessing on {problems}", "接近随机水平的有{problems}"),
    "sentence.failed": ("did not finish {problems}", "没有完成{problems}"),
    "figure": ("{title} ({share})", "{title}（{share}）"),
    "list": (", ", "、"),
    "short.kind": (
        "Best of {seeds} seeds. Solved: at least 99 %. Near guessing: at most a tenth of the way from guessing to "
        "perfect, where guessing is the most frequent answer, or in recall the most frequent value of the row. A model "
        "that fails has failed at this size and budget; that does not show that it never could.",
        "取 {seeds} 个种子中最好的结果。“解决”：至少 99 %。“接近随机水平”：从随机水平到满分的距离，走过的不超过"
        "十分之一；"
        "随机水平指总答最常见的答案，在联想回忆中指总答本行最常见的值。"
        "失败只说明在这个大小和训练量下失败，并不证明它永远做不到。",
    ),
    # the table
    "caption": (
        "Accuracy of the best seed; below it the median of the seeds, and published figures (letters: sources, below)",
        "最好的种子的准确率；下方为各种子的中位数和已发表的数值（字母为来源，见下文）",
    ),
    "caption trained": (
        "Accuracy at the trained lengths, best seed (median below it)",
        "训练过的长度上的准确率：最好的种子（下方为中位数）",
    ),
    "model": ("Model", "模型"),
    "memory": ("Memory", "记忆"),
    "memory of": ("numbers kept after {tokens} tokens", "读 {tokens} 个词元之后保存的数的个数"),
    "median": ("median {share}", "中位数 {share}"),
    "beyond": ("{low}–{high}, trained to {trained}", "长度 {low}–{high}，训练到 {trained}"),
    "size.pairs": ("{high} pairs", "{high} 对"),
    "size.pairs so far": ("up to {high} pairs", "至多 {high} 对"),
    "size.length": ("length {high}", "长度 {high}"),
    "guessing": ("guessing", "随机水平"),
    # the charts
    "chart parity": ("Parity by length", "奇偶校验：准确率随长度的变化"),
    "chart remark": (
        "Best seed. Left of the dotted line: lengths seen in training. Each point is the mean over lengths up to it.",
        "最好的种子。虚线左侧为训练过的长度；每个点是截至该长度的一段内的平均。",
    ),
    "chart many_pairs": ("Recall of many pairs, by number of pairs", "多对联想回忆：准确率随对数的变化"),
    "pairs remark": (
        "Best seed. All numbers of pairs were trained.",
        "最好的种子。各种对数都训练过。",
    ),
    "accuracy": ("Accuracy", "准确率"),
    "length": ("Length", "长度"),
    "number of pairs": ("Pairs to remember", "要记住的对数"),
    "trained up to": ("trained", "训练长度"),
    # published figures
    "agrees": (
        "{problem}, {name}: {ours} here, {theirs} published ({called}, {source}).",
        "{problem}，{name}：本次 {ours}，已发表 {theirs}（{called}，{source}）。",
    ),
    "differs": (
        "Disagrees with what is published: {problem}, {name}: {ours} here, {theirs} published ({called}, {source}).",
        "与已发表的不一致：{problem}，{name}：本次 {ours}，已发表 {theirs}（{called}，{source}）。",
    ),
    "agreements": ("Agreements", "一致"),
    "disagreements": ("Disagreements", "不一致"),
    "none published": (
        "No published figure is known for these models on these problems.",
        "对这些模型和问题，没有已知的已发表数值。",
    ),
    "rule of agreement": (
        "Two figures agree if both count as solved, both are near guessing, or they differ by at most ten points. "
        "Protocols differ, so a disagreement is a question, not a refutation.",
        "两个数值“一致”是指：都算解决，或都接近随机水平，或相差不超过十个百分点。规程不同，因此不一致是问题，不是反驳。",
    ),
    "source": ("{mark}: {name}: {protocol}.", "{mark}：{name}：{protocol}。"),
    # the method
    "how.parity": (
        "Parity: after each bit, is the number of ones so far odd? Trained at lengths 1 to 40, each equally "
        "often; tested up to 256.",
        "奇偶校验：每读一位，问到此为止 1 的个数是否为奇数。训练长度 1–40，各占同样份额；测试到 256。",
    ),
    "how.arithmetic": (
        "Modular arithmetic: a chain of additions and subtractions; after each number, its value modulo 5. Lengths as "
        "for parity.",
        "模运算：一串加减法，每读一个数，问当前值模 5 的结果。长度与奇偶校验相同。",
    ),
    "how.recall": (
        "Associative recall: keys and values in turn, 10 of each, 40 tokens; at each key that came before, the value "
        "that goes with it in this row.",
        "联想回忆：键与值交替出现，各 10 种，共 40 个词元；遇到出现过的键，答出本行中与它相配的值。",
    ),
    "how.many_pairs": (
        "Recall of many pairs (in the manner of multi-query associative recall): 4, 8, 16 or 32 pairs from 64 keys and "
        "64 values, then every key once, in another order; scored at 32 pairs.",
        "多对联想回忆（仿照 MQAR）：4、8、16 或 32 对，取自 64 种键和 64 种值，随后换一种顺序逐一问每个键；"
        "按 32 对计分。",
    ),
    "how.induction": (
        "Induction: one mark among random symbols (20 kinds, 40 tokens); at the mark at the end, the symbol that "
        "followed the first one. A row has one answer, so a step has twice as many rows.",
        "归纳：随机符号（20 种，共 40 个词元）中有一个标记；末尾再次出现标记时，答出第一个标记之后的符号。"
        "每行只有一个答案，因此每步的行数加倍。",
    ),
    "how.duplicate": (
        "Copying: a string of bits and a mark, then the same string, without reading back what was answered. Trained "
        "at lengths 1 to 20, tested at 24 to 64.",
        "复制：一串比特和一个标记，然后原样写出，不读回已写的答案。训练长度 1–20，测试长度 24–64。",
    ),
    "how.reverse": (
        "Reversal: the same, from the last bit to the first.",
        "反转：同上，但从最后一位写到第一位。",
    ),
    "how.fair": (
        "Every model has {parameters} parameters within 2 % (its default number of layers, at most {depth}; its width "
        "is solved for), no dropout, and sees the same rows for the same seed: at most {steps} steps of {batch} rows, "
        "drawn anew each time. Training ends early only when the loss has been at most {enough} nats per answer at "
        "every trained size in turn.",
        "每个模型都有 {parameters} 个参数（误差 2 % 以内；层数取默认值，但至多 {depth} 层；宽度由此解出），"
        "不用 dropout；同一种子下所有模型读相同的数据：至多 {steps} 步，每步 {batch} 行，每次重新生成。"
        "只有当每种训练大小上的损失依次都不超过每个答案 {enough} 奈特时才提前结束。",
    ),
    "how.smaller": (
        "No model is wider than {widest}; for this reason it has fewer parameters: {names}.",
        "宽度不超过 {widest}；因此参数较少的有：{names}。",
    ),
    "how.size": ("{name} ({low} to {high}, by problem)", "{name}（因问题而异，{low} 至 {high} 个）"),
    "how.rates": (
        "AdamW. Learning rates: {rates}, tried in turn with the first seed until training ends early with one of "
        "them; the one with the lowest training loss at the end is used for all {seeds} seeds. Lengths beyond the "
        "trained ones play no part in that choice.",
        "优化器为 AdamW。学习率 {rates} 依次用第一个种子试验，若其中之一使训练提前结束，则不再试其余的；"
        "取训练末尾损失最低者用于全部 {seeds} 个种子。"
        "超出训练长度的结果不参与这一选择。",
    ),
    "how.tested": (
        "Test rows: {tested} of each size, drawn apart from those of training. Published figures are those of the best "
        "seed, so the best comes first; the median shows how much of it was luck.",
        "测试数据：每种大小 {tested} 行，与训练数据分开生成。已发表的数值取最好的种子，因此这里先列最好的；"
        "中位数说明其中有多少运气。",
    ),
    "how.left out": ("Left out: {names}.", "未参加：{names}。"),
    "how.time": ("This took {time}, on {system}.", "用时 {time}，机器：{system}。"),
}
