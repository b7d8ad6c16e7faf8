"""What the report says, in English and Chinese side by side."""

from __future__ import annotations

from typing import Any

from seqloom.compare.report.terms import TERMS

LANGUAGES = ("en", "zh")

WORDS: dict[str, tuple[str, str]] = {
    # the page
    "title": ("Which sequence model for {data}?", "{data} 该用哪种序列模型？"),
    "title without data": ("Which sequence model?", "该用哪种序列模型？"),
    "contents": ("Contents", "目录"),
    "no script": (
        "The charts need JavaScript; every number is in the tables.",
        "图表需要 JavaScript；所有数字都在表格中。",
    ),
    "numbers": ("The numbers", "数值"),
    "not measured": ("Not measured in this comparison.", "本次比较未测量。"),
    "made by": (
        "Made by seqloom {version}. This page loads nothing from anywhere.",
        "由 seqloom {version} 生成。本页面不加载任何外部内容。",
    ),
    "colon": (": ", "："),
    "comma": (", ", "，"),
    "legend": ("Models; press one to hide or show it", "模型；点按可隐藏或显示"),
    # the sections
    "answer": ("Recommendation", "推荐"),
    "results": ("Results", "结果"),
    "learning": ("Learning curves", "学习曲线"),
    "quality and cost": ("Quality against cost", "质量与代价"),
    "cost": ("Cost against context", "代价随上下文的变化"),
    "cost.row": ("Cost against the length of a row", "代价随样本长度的变化"),
    "cost.source": ("Cost against the length of the source", "代价随源文本长度的变化"),
    "recipes": ("What the recipe gives and what the architecture gives", "配方的作用与架构的作用"),
    "search": ("The search", "超参数搜索"),
    "aspects": ("Seven aspects", "七个方面"),
    "samples": ("Generated samples", "生成的样例"),
    "protocol": ("Protocol", "比较协议"),
    "commands": ("Commands to reproduce it", "重现所用的命令"),
    # the answer
    "recommended": ("Recommended", "推荐使用"),
    "no recommendation": ("No recommendation", "不作推荐"),
    "preferred": ("Preferred: {what}", "优先考虑：{what}"),
    "reasons": ("Why", "理由"),
    "would change": ("What would change it", "什么会改变这个结论"),
    "prefer.quality": ("quality", "质量"),
    "prefer.latency": ("low latency", "低延迟"),
    "prefer.memory": ("little memory", "少占内存"),
    "prefer.training": ("quick training", "训练快"),
    "constraint.max_params": ("at most {value} parameters", "参数量不超过 {value}"),
    "constraint.max_latency_ms": ("at most {value} ms per token", "每词元不超过 {value} 毫秒"),
    "constraint.max_latency_ms.row": ("at most {value} ms per row", "每条样本不超过 {value} 毫秒"),
    "constraint.max_latency_ms.source": ("at most {value} ms per source", "每条源文本不超过 {value} 毫秒"),
    "constraint.streaming": ("streaming: constant state", "流式：状态大小恒定"),
    # the main table
    "rank": ("rank", "名次"),
    "model": ("Model", "模型"),
    "difference": ("Behind the best", "落后最佳"),
    "parameters": ("Parameters", "参数量"),
    "backbone": ("backbone", "主干"),
    "FLOPs per token": ("FLOPs per token", "每词元 FLOPs"),
    "forward": ("forward", "前向"),
    "training speed": ("Training", "训练速度"),
    "tokens per second": ("tokens/s", "词元/秒"),
    "peak memory": ("Peak memory", "内存峰值"),
    "latency": ("Latency", "延迟"),
    "at context": ("at {context} tokens", "上下文 {context}"),
    "at context.row": ("row of {context} tokens", "样本 {context} 词元"),
    "at context.source": ("source of {context} tokens", "源文本 {context} 词元"),
    "baseline": ("baseline", "基线"),
    "p value": ("p, Holm", "p，Holm"),
    "interval": ("{share} interval", "{share} 区间"),
    "main caption": ("Test score in {unit}; {direction}", "测试分数，单位：{unit}；{direction}"),
    "higher": ("higher is better", "越高越好"),
    "lower": ("lower is better", "越低越好"),
    "how scored": ("Scored: {how}.", "评分方式：{how}。"),
    "how judged": (
        "Models that cannot be told apart from the best share its rank. A difference counts when p is below {level} in "
        "a paired test on the same test pieces, corrected by Holm. “Unclear” cannot be judged, as with a single seed.",
        "与最佳模型分不出高下的模型与它并列。在相同测试片段上作配对检验、经 Holm 校正后 p 小于 {level}，才算有差别。"
        "“不明”指无法判断，例如只有一个随机种子时。",
    ),
    "one seed": ("one seed, no interval", "一个种子，无区间"),
    "some seeds": ("{done} of {all} seeds", "{all} 个种子中的 {done} 个"),
    "verdict.best": ("best", "最佳"),
    "verdict.tie": ("tie", "并列"),
    "verdict.worse": ("worse", "较差"),
    "verdict.unclear": ("unclear", "不明"),
    "verdict.failed": ("failed", "失败"),
    "verdict.": ("not tested", "未检验"),
    "no reason": ("no reason was recorded", "没有记录原因"),
    "nothing finished": ("No model finished; the table says why.", "没有模型训练完成；原因见表。"),
    # the charts
    "forest": ("Test score of each model", "各模型的测试分数"),
    "forest remark": (
        "Small dots are single seeds, bars the interval of the mean.",
        "小点为单个随机种子，横线为均值的区间。",
    ),
    "valid against tokens": ("Against training tokens", "按训练词元数"),
    "valid against seconds": ("Against training time", "按训练时间"),
    "validation": ("Validation {metric}", "验证{metric}"),
    "test": ("Test {metric}", "测试{metric}"),
    "training tokens": ("Training tokens", "训练词元数"),
    "seconds": ("Seconds", "秒"),
    "learning remark": ("Thick: mean over seeds. Thin: single seeds.", "粗线：各种子的均值。细线：单个种子。"),
    "front remark": (
        "Dotted: the front. A model on it is beaten by no other in both score and cost.",
        "虚线为前沿：位于其上的模型，没有其他模型在分数和代价两方面都胜过它。",
    ),
    "front": ("front", "前沿"),
    "on the front": ("✓ on the front", "✓ 位于前沿"),
    "training seconds": ("Training seconds", "训练秒数"),
    "latency axis": ("Milliseconds per generated token", "每生成一个词元的毫秒数"),
    "latency axis.row": ("Milliseconds per row", "每条样本的毫秒数"),
    "latency at.row": ("ms per row of {context} tokens", "{context} 词元样本的毫秒数"),
    "context.row": ("Row in tokens", "样本（词元）"),
    "time per token.row": ("Time per answer", "每次回答的用时"),
    "cost remark.row": (
        "How long the answer to one row takes, read by itself. A row is seen whole: nothing is kept after it.",
        "单独处理一条样本所需的时间。样本被整体读取，读完后不保存任何状态。",
    ),
    "latency axis.source": ("Milliseconds per source", "每条源文本的毫秒数"),
    "latency at.source": ("ms per source of {context} tokens", "{context} 词元源文本的毫秒数"),
    "context.source": ("Source in tokens", "源文本（词元）"),
    "time per token.source": ("Time per translated source", "每条源文本的用时"),
    "cost remark.source": (
        "How long one source takes, greedily and by itself, with an output as long as the source; and what must be "
        "kept after reading it.",
        "单独处理一条源文本（贪心解码，输出与源文本等长）所需的时间，以及读完后必须保存的状态。",
    ),
    "latency at": ("ms per token at context {context}", "上下文 {context} 时每词元毫秒数"),
    "state axis": ("Bytes of state", "状态字节数"),
    "context": ("Context in tokens", "上下文（词元）"),
    "time per token": ("Time per generated token", "每生成一个词元的时间"),
    "size of state": ("Size of the state", "状态的大小"),
    "cost remark": (
        "What one more token costs after so many have been read, and what must be kept for it.",
        "读过这么多词元之后，再生成一个词元的时间，以及为此必须保存的状态。",
    ),
    "positions": ("Loss by position", "各位置的损失"),
    "loss axis": ("Loss", "损失"),
    "aspects chart": ("Along the sequence", "沿序列的表现"),
    "position": ("Position in the sequence", "序列中的位置"),
    "trained length": ("trained length", "训练长度"),
    "forgetting": ("What is forgotten on the way", "途中遗忘了什么"),
    "forgetting remark": (
        "Share of reference tokens written at their place, mean over seeds. By place: per cent of the target that came "
        "before; it stands for the place in the source where both sides go in the same order (or, from the right, "
        "where the order is reversed).",
        "参考译文中在原位被正确写出的词元所占比例，为各种子的均值。“相对位置”指目标中已写出的百分比；"
        "两侧顺序相同（或相反，则从右看）时，它对应源文本中的位置。",
    ),
    "forgetting by_place": ("Accuracy by relative place", "按相对位置的准确率"),
    "forgetting by_step": ("Accuracy by output step", "按输出步的准确率"),
    "forgetting by_length": ("Accuracy by source length", "按源文本长度的准确率"),
    "forgetting axis": ("Accuracy", "准确率"),
    "axis by_place": ("Place in the target, per cent", "目标中的位置（%）"),
    "axis by_step": ("Step of the output", "输出步"),
    "axis by_length": ("Source length in tokens", "源文本长度（词元）"),
    "horizon": ("Error against horizon", "误差随预测步数的变化"),
    "horizon remark": (
        "Root mean squared error so many steps ahead, mean over seeds. Thin: naive forecasts, which the table names.",
        "提前若干步预测的均方根误差，为各种子的均值。细线为朴素预测，名称见表。",
    ),
    "horizon rmse": ("On the test part", "测试部分"),
    "horizon inside": ("Before it, where models learned", "测试之前（学习过的部分）"),
    "horizon axis": ("RMSE, deviations of the training part", "RMSE（以训练部分的标准差计）"),
    "steps ahead": ("Steps ahead", "提前步数"),
    "recall": ("Recall against distance", "回忆准确率与距离"),
    "recall axis": ("Recall", "回忆准确率"),
    "distance": ("Distance in tokens", "距离（词元）"),
    "chance": ("chance", "随机水平"),
    "throughput": ("Training speed against length", "训练速度与序列长度"),
    "throughput axis": ("Tokens per second", "每秒词元数"),
    "length": ("Sequence length", "序列长度"),
    # recipes
    "recipe caption": (
        "Best validation score of the search, each recipe with the same budget per trial",
        "搜索中最好的验证分数，每次试验预算相同",
    ),
    "spread": ("Spread", "差距"),
    "spreads": (
        "Within an architecture the recipe moves the score by {within} (median); between architectures, each with its "
        "best recipe, the scores spread over {between}.",
        "同一架构内，换配方使分数变化 {within}（中位数）；各架构都用自己最好的配方时，架构之间相差 {between}。",
    ),
    "recipe counts more": ("Here the recipe counts for more than the architecture.", "在这里，配方比架构更重要。"),
    "architecture counts more": (
        "Here the architecture counts for more than the recipe.",
        "在这里，架构比配方更重要。",
    ),
    "both count": ("Here both count for about as much.", "在这里，两者的作用相当。"),
    # the search
    "search remark": (
        "Every architecture got {trials} trials, each with {share} of the training budget, judged on validation data "
        "only.",
        "每种架构各有 {trials} 次试验，每次用训练预算的 {share}，只用验证数据评判。",
    ),
    "search chart": ("Validation score against the scale of the rate", "验证分数与学习率倍数"),
    "search chart remark": ("Hollow: given up early or failed.", "空心：提前终止或失败。"),
    "scale": ("Scale of the learning rates", "学习率倍数"),
    "trials": ("All trials", "全部试验"),
    "trial": ("Trial", "试验"),
    "state": ("State", "状况"),
    "score": ("Score", "分数"),
    "share": ("Budget used", "所用预算"),
    "state.done": ("done", "完成"),
    "state.pruned": ("given up early", "提前终止"),
    "state.failed": ("failed", "失败"),
    "kept": ("kept", "采用"),
    "setting.scale": ("scale of the rates", "学习率倍数"),
    "setting.scale of the learning rates": ("scale of the learning rates", "学习率倍数"),
    "setting.optimizer": ("optimizer", "优化器"),
    "setting.dropout": ("dropout", "丢弃率"),
    # the seven aspects
    "aspect": ("Aspect", "方面"),
    "aspects caption": ("Seven aspects, side by side", "七个方面对照"),
    "aspect structure": ("Structure", "结构"),
    "aspect structure small": ("what it remembers", "记忆是什么"),
    "aspect length": ("Sequence length", "序列长度"),
    "aspect length small": ("loss at and beyond the trained length", "训练长度处与更远处的损失"),
    "aspect length small.source": ("output tokens that are right, by source length", "按源文本长度，输出正确的词元"),
    "aspect dependency": ("Dependency", "依赖距离"),
    "aspect dependency small": ("distance it can look back", "能回看多远"),
    "aspect size": ("Size", "规模"),
    "aspect size small": ("parameters, work per token", "参数量与每词元计算量"),
    "aspect training": ("Training and parallelism", "训练与并行"),
    "aspect training small": ("speed at short and long sequences", "短序列与长序列的速度"),
    "aspect interpretability": ("Interpretability", "可解释性"),
    "aspect interpretability small": ("what can be watched inside", "内部可观察的量"),
    "aspect transfer": ("Transfer", "迁移"),
    "aspect transfer small": ("what pre-training brings", "预训练带来什么"),
    "state constant": ("{bytes}, constant", "{bytes}，恒定"),
    "state grows": ("{first} to {last}, growing", "{first} 至 {last}，随上下文增长"),
    "loss at": ("{loss} at {length}", "{length} 处 {loss}"),
    "loss beyond": ("{loss} at {first}–{last}", "{first}–{last} 处 {loss}"),
    "right at": ("{share} right at {first}–{last}", "长度 {first}–{last}：{share} 正确"),
    "reaches": ("{distance} tokens", "{distance} 个词元"),
    "reaches the end": ("{distance} tokens, the longest tried", "{distance} 个词元（所试最长）"),
    "reaches nothing": ("none of those tried", "所试距离均不能"),
    "count of parameters": ("{count} parameters", "{count} 个参数"),
    "work": ("{work} FLOPs per token", "每词元 {work} FLOPs"),
    "speed at": ("{speed} tokens/s at {length}", "长度 {length}：{speed} 词元/秒"),
    "taps": ("named tensors: {count}", "有名张量：{count} 个"),
    "transfer": (
        "not measured: --pretrain TEXT measures it, for tasks of understanding",
        "未测量：理解类任务可用 --pretrain 文本 测量",
    ),
    "transfer gain": ("{before} → {after} with {examples} examples", "{examples} 条样例：{before} → {after}"),
    "transfer chart": ("With and without pre-training", "有无预训练的对照"),
    "with pre-training": ("with pre-training", "有预训练"),
    "without pre-training": ("from scratch", "从零开始"),
    "labelled examples": ("Labelled examples", "标注样例数"),
    "gain": ("Gain", "提升"),
    "transfer remark": (
        "Filled: begun with an encoder that was pre-trained on raw text. Hollow: from scratch, with the same rows, "
        "settings and budget. Taught before: {taught}.",
        "实心：以在原始文本上预训练过的编码器开始。空心：从零开始；样例、设置与预算相同。预训练方式：{taught}。",
    ),
    "reach remark": (
        "Dependency: the longest distance at which recall is above half-way between chance and 1.",
        "依赖距离：回忆准确率仍高于随机水平与 1 之中点的最长距离。",
    ),
    # samples
    "samples remark": (
        "What each model makes of the same beginning, not selected.",
        "各模型由同一开头各续写一段，未经挑选。",
    ),
    "samples remark.source": (
        "What each model makes of the first source of the test part, not selected.",
        "各模型对测试部分第一条源文本的输出，未经挑选。",
    ),
    "sample source": ("Source", "源文本"),
    "sample wanted": ("Reference", "参考"),
    # the protocol
    "data caption": ("Data", "数据"),
    "part": ("Part", "部分"),
    "file": ("File", "文件"),
    "bytes": ("Bytes", "字节"),
    "tokens": ("Tokens", "词元"),
    "hash": ("Hash", "哈希"),
    "part.train": ("training", "训练"),
    "part.valid": ("validation", "验证"),
    "part.test": ("test", "测试"),
    "rules caption": ("Rules, the same for every model", "规则，各模型相同"),
    "item": ("Item", "项目"),
    "value": ("Value", "取值"),
    "task": ("Task", "任务"),
    "metric": ("Metric", "指标"),
    "scored": ("Scored", "评分方式"),
    "size": ("Size", "规模"),
    "size all": ("{count} parameters, all counted", "{count} 个参数（全部计入）"),
    "size backbone": (
        "{count} parameters, embeddings and head left out",
        "{count} 个参数（不计词嵌入和输出层）",
    ),
    "budget": ("Training budget", "训练预算"),
    "budget.tokens": ("{amount} tokens", "{amount} 词元"),
    "budget.seconds": ("{amount} seconds", "{amount} 秒"),
    "tuning": ("Tuning trials per model", "每个模型的调参试验"),
    "trial share": ("{trials}, each with {share} of the budget", "{trials} 次，每次用预算的 {share}"),
    "none": ("none", "无"),
    "space": ("Searched: {name}", "搜索范围：{name}"),
    "from to": ("{low} to {high}", "{low} 至 {high}"),
    "seeds": ("Seeds", "随机种子"),
    "shared": ("Shared reading", "共同的读法"),
    "judged": ("Intervals and differences", "区间与差别"),
    "judged by": ("{share} intervals; a difference counts when p < {level}", "{share} 区间；p < {level} 才算有差别"),
    "where": ("Ran on", "运行环境"),
    "where value": (
        "{on}, {device}; jobs: {jobs}, threads each: {threads}",
        "{on}，{device}；并行任务 {jobs}，每任务线程 {threads}",
    ),
    "started": ("Started", "开始时间"),
    "time taken": ("Time", "用时"),
    "time value": (
        "{wall} by the clock; {training} of training, {jobs} at a time",
        "实际用时 {wall}；训练共 {training}，同时 {jobs} 个任务",
    ),
    "overhead": ("Time not spent training", "训练以外的时间占比"),
    "versions": ("Versions", "版本"),
    "models caption": ("Each model as it was compared", "各模型参与比较时的设置"),
    "given": ("Given", "用户给定"),
    "config": ("Configuration", "配置"),
    "tuned": ("Found by the search", "搜索所得"),
    "whole command": ("The whole comparison", "整个比较"),
    "first run of": ("{name}, its first run", "{name} 的第一次训练"),
    **TERMS,
}


class Speaker:
    """Says things in one language."""

    def __init__(self, language: str) -> None:
        self.language, self._column = language, LANGUAGES.index(language)

    def __call__(self, key: str, **values: Any) -> str:
        return WORDS[key][self._column].format(**values)

    def by(self, what: str, key: str, **values: Any) -> str:
        """As it is said where one waits for that, if it is said otherwise there."""
        return self(f"{key}.{what}" if f"{key}.{what}" in WORDS else key, **values)

    def term(self, group: str, name: Any) -> str:
        """The word for a name that a result uses; the name itself when it has none."""
        known = WORDS.get(f"{group}.{name}")
        return known[self._column] if known else str(name)

    def of(self, texts: Any) -> list[str]:
        """This language's list of sentences, else the English one."""
        found = texts if isinstance(texts, dict) else {}
        return [str(text) for text in found.get(self.language) or found.get("en") or []]
