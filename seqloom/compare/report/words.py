"""Every text of the report, in English and Chinese side by side."""

from __future__ import annotations

from functools import partial

from seqloom.compare.report.aspects_words import ASPECTS
from seqloom.compare.report.ladder_words import LADDER
from seqloom.compare.report.showing_words import SHOWING
from seqloom.compare.report.tuning_words import TUNING
from seqloom.pages.words import Speaker

_OWN: dict[str, tuple[str, str]] = {
    # the page
    "title": ("Which sequence model for {data}?", "{data} 该选哪种序列模型？"),
    "title without data": ("Which sequence model?", "该选哪种序列模型？"),
    # the sections
    "answer": ("Recommendation", "推荐"),
    "results": ("Results", "结果"),
    "reasons": ("Reasons", "理由"),
    "ladder": ("What changes with scale", "规模带来的变化"),
    "showing": ("Predictions on the test set", "测试集上的预测"),
    "learning": ("Learning curves", "学习曲线"),
    "quality and cost": ("Quality vs. cost", "质量与开销"),
    "cost": ("Cost by context length", "开销随上下文长度的变化"),
    "cost.row": ("Cost by row length", "开销随样本长度的变化"),
    "cost.source": ("Cost by source length", "开销随源文本长度的变化"),
    "recipes": ("Recipe vs. architecture", "训练配方与架构的影响"),
    "search": ("Hyperparameter search", "超参数搜索"),
    "aspects": ("Aspects besides the score", "分数之外的各方面"),
    "samples": ("Sample outputs", "输出样例"),
    "protocol": ("Protocol", "比较协议"),
    "commands": ("Commands to reproduce the results", "复现命令"),
    # the answer
    "recommended": ("Recommended", "推荐使用"),
    "recommended for now": ("Recommended, but not certain", "推荐使用，但尚不确定"),
    "use": ("Use the recommended model", "使用推荐的模型"),
    "use first": ("Use the model with the best score ({name})", "使用分数最好的模型（{name}）"),
    "no recommendation": ("No recommendation", "不作推荐"),
    "preferred": ("Priority: {what}", "优先考虑：{what}"),
    "why": ("Why", "为什么"),
    "would change": ("What would change the recommendation", "哪些情况会改变结论"),
    "prefer.quality": ("quality", "质量"),
    "prefer.latency": ("low latency", "低延迟"),
    "prefer.memory": ("low memory use", "低内存占用"),
    "prefer.training": ("fast training", "快速训练"),
    "constraint.max_params": ("at most {value} parameters", "参数量不超过 {value}"),
    "constraint.max_latency_ms": ("at most {value} ms per token", "每词元不超过 {value} 毫秒"),
    "constraint.max_latency_ms.row": ("at most {value} ms per row", "每条样本不超过 {value} 毫秒"),
    "constraint.max_latency_ms.source": ("at most {value} ms per source", "每条源文本不超过 {value} 毫秒"),
    "constraint.streaming": ("streaming (constant state size)", "流式推理（状态大小恒定）"),
    # the main table
    "rank": ("rank", "名次"),
    "model": ("Model", "模型"),
    "difference": ("Behind (+) or ahead (−)", "落后（+）或领先（−）"),
    "all together": ("of the best other model, {share} CI", "相对其余最佳，{share} 置信区间"),
    "fitted": ("fitted, no training", "直接拟合，无需训练"),
    "parameters": ("Parameters", "参数量"),
    "size": ("Size", "规模"),
    "size small": ("parameters, backbone", "参数量，主干"),
    "stored": ("stored values", "存储数值"),
    "trained share": ("{count} trained", "训练其中 {count} 个"),
    "borrowed": ("and {bytes} that it starts from", "另需起始权重 {bytes}"),
    "stored remark": (
        "“Stored values”: a model that counts or remembers has no parameters; its size is that of all that it stores, "
        "such as counts, weights and keys.",
        "“存储数值”：靠计数或记忆的模型没有参数，其规模为所存储的全部数值，如计数、权重和键。",
    ),
    "stored note": (
        "size: parameters; *: stored values of a model that has none",
        "规模：参数量；*：没有参数的模型所存储的数值",
    ),
    "time steps": ("Tokens are time steps here.", "此处的词元即时间步。"),
    "on disk": ("On disk", "磁盘占用"),
    "FLOPs per token": ("FLOPs per token", "每词元 FLOPs"),
    "forward": ("forward", "前向"),
    "training speed": ("Training speed", "训练速度"),
    "tokens per second": ("tokens/s", "词元/秒"),
    "peak memory": ("Peak memory", "内存峰值"),
    "latency": ("Latency", "延迟"),
    "at context": ("at {context} tokens", "上下文 {context} 词元"),
    "at context.row": ("row of {context} tokens", "样本 {context} 词元"),
    "at context.source": ("source of {context} tokens", "源文本 {context} 词元"),
    "baseline": ("baseline", "基线"),
    "interval": ("{share} CI", "{share} 置信区间"),
    "higher": ("higher is better", "越高越好"),
    "lower": ("lower is better", "越低越好"),
    "how scored": ("Scoring: {how}.", "评分方式：{how}。"),
    "how judged": (
        "Each model is compared with the best of the others, on the same test segments; the intervals of these "
        "differences hold for all models together with {share} confidence, and include the luck of tuning, of seeds "
        "and of the test data. “Worse”: another model is better by more than chance. “Equivalent”: behind by less than "
        "the margin of {margin}, if at all. “Not enough evidence”: neither is shown, or no test was possible, for "
        "example with a single seed.",
        "每个模型都在相同的测试片段上与其余模型中最好的相比；这些差异的区间对所有模型同时成立的置信度为 {share}，"
        "已计入调参、随机种子和测试数据的偶然性。“较差”：另有模型更好，且差异超出偶然。“等价”：即使落后，也小于 "
        "{margin} 的容差。“证据不足”：两者均未得到证实，或无法检验，例如只有一个随机种子。",
    ),
    "one seed": ("one seed, no CI", "仅一个随机种子，无置信区间"),
    "some seeds": ("{done} of {all} seeds", "{all} 个随机种子中的 {done} 个"),
    "no reason": ("no reason recorded", "未记录原因"),
    "nothing finished": (
        "No model finished training; the table gives the reasons.",
        "没有模型完成训练，原因见表。",
    ),
    # the charts
    "forest": ("Test score of each model", "各模型的测试分数"),
    "forest lower": ("Lower is better.", "越低越好。"),
    "forest higher": ("Higher is better.", "越高越好。"),
    "forest seeds": ("Small dots: single seeds.", "小点：单个随机种子。"),
    "forest bars": ("Bars: confidence interval of the mean.", "横线：均值的置信区间。"),
    "valid against tokens": ("By training tokens", "按训练词元数"),
    "valid against seconds": ("By training time", "按训练用时"),
    "validation": ("Validation {metric}", "验证集{metric}"),
    "test": ("Test {metric}", "测试集{metric}"),
    "training tokens": ("Training tokens", "训练词元数"),
    "seconds": ("Seconds", "秒"),
    "seconds.cpu": ("Seconds of CPU time", "CPU 时间（秒）"),
    "learning remark": (
        "Thick lines: mean over seeds. Thin lines: single seeds.",
        "粗线：各随机种子的均值。细线：单个随机种子。",
    ),
    "learning single": ("One line per seed.", "每条线对应一个随机种子。"),
    "front remark": (
        "Dotted line: Pareto front. No other model beats a model on it in both score and cost.",
        "虚线：帕累托前沿。对前沿上的模型，没有其他模型能在分数和开销上同时胜过它。",
    ),
    "front": ("Pareto front", "帕累托前沿"),
    "on the front": ("✓ on the Pareto front", "✓ 位于帕累托前沿"),
    "training seconds": ("Training time, s", "训练用时（秒）"),
    "training seconds.cpu": ("Training, CPU seconds", "训练 CPU 时间（秒）"),
    "latency axis": ("Latency, ms per token", "延迟（毫秒/词元）"),
    "latency axis.row": ("Latency, ms per row", "延迟（毫秒/样本）"),
    "latency axis.source": ("Latency, ms per source", "延迟（毫秒/源文本）"),
    "latency at": ("Latency, ms per token at context length {context}", "延迟（毫秒/词元，上下文长度 {context}）"),
    "latency at.row": ("Latency, ms per row of {context} tokens", "延迟（毫秒/样本，长度 {context} 词元）"),
    "latency at.source": ("Latency, ms per source of {context} tokens", "延迟（毫秒/源文本，长度 {context} 词元）"),
    "context": ("Context length in tokens", "上下文长度（词元）"),
    "context.row": ("Row length in tokens", "样本长度（词元）"),
    "context.source": ("Source length in tokens", "源文本长度（词元）"),
    "time per token": ("Latency per generated token", "每生成一个词元的延迟"),
    "time per token.row": ("Latency per row", "每条样本的延迟"),
    "time per token.source": ("Latency per source", "每条源文本的延迟"),
    "cost remark": (
        "Time to generate the next token after a context of this length, and the size of the state that is kept.",
        "在该长度的上下文之后生成下一个词元的时间，以及需要保存的状态大小。",
    ),
    "cost remark.row": (
        "Time to process one row with batch size 1. Rows are read whole, so no state is kept.",
        "批大小为 1 时处理一条样本的时间。样本整条读入，不保存状态。",
    ),
    "cost remark.source": (
        "Time to process one source with batch size 1, decoding greedily an output as long as the source, and the size "
        "of the state after reading it.",
        "批大小为 1 时处理一条源文本（贪心解码，输出与源文本等长）的时间，以及读完源文本后的状态大小。",
    ),
    "measured once": (
        "Measured once, because they compute the same with different weights: {names}.",
        "以下模型的计算完全相同，只是权重不同，因此只测量一次：{names}。",
    ),
    "state axis": ("State size, bytes", "状态大小（字节）"),
    "size of state": ("State size", "状态大小"),
    "positions": ("Loss by position", "各位置的损失"),
    "loss axis": ("Loss", "损失"),
    "aspects chart": ("Position, distance and length", "位置、距离与长度的影响"),
    "position": ("Position in the sequence", "序列中的位置"),
    "trained length": ("training length", "训练长度"),
    "forgetting": ("Output accuracy by position and source length", "输出准确率随位置和源文本长度的变化"),
    "forgetting remark": (
        "Share of reference words (characters in text without spaces) output at the correct position, mean over seeds. "
        "The relative position is the percentage of the reference that precedes the word; where source and target have "
        "the same order it corresponds to the position in the source (counted from the end if the order is reversed).",
        "参考文本的词（文本不含空格时为字符）在相同位置正确输出的比例，为各随机种子的均值。相对位置指该词之前的内容占参考文本的百分比；"
        "源文本与目标顺序一致时，它对应源文本中的位置（顺序相反时从末尾算起）。",
    ),
    "forgetting by_place": ("Accuracy by relative position", "按相对位置的准确率"),
    "forgetting by_step": ("Accuracy by output position", "按输出位置的准确率"),
    "forgetting by_length": ("Accuracy by source length", "按源文本长度的准确率"),
    "forgetting axis": ("Accuracy", "准确率"),
    "axis by_place": ("Relative position in the reference, %", "在参考文本中的相对位置（%）"),
    "axis by_step": ("Position in the output", "输出中的位置"),
    "axis by_length": ("Source length in words or characters", "源文本长度（词或字符）"),
    "horizon": ("Error by forecast step", "误差随预测步的变化"),
    "horizon remark": (
        "Root mean squared error at each forecast step, mean over seeds. Thin lines: the best naive forecasts; the "
        "table has all of them.",
        "各预测步的均方根误差，为各随机种子的均值。细线：最好的几种朴素预测；全部朴素预测见表。",
    ),
    "horizon rmse": ("Test set", "测试集"),
    "horizon inside": ("Before the test set", "测试集之前"),
    "horizon axis": ("RMSE, in standard deviations of the training set", "均方根误差（以训练集标准差为单位）"),
    "steps ahead": ("Steps ahead", "预测步"),
    "recall": ("Recall accuracy by distance", "回忆准确率随距离的变化"),
    "recall axis": ("Recall accuracy", "回忆准确率"),
    "aspects remark": (
        "Recall: thin lines are the lowest and the highest seed.",
        "回忆：细线为最低和最高的随机种子。",
    ),
    "distance": ("Distance in tokens", "距离（词元）"),
    "chance": ("chance level", "随机水平"),
    "throughput": ("Training speed by sequence length", "训练速度随序列长度的变化"),
    "throughput axis": ("Tokens per second", "词元/秒"),
    "length": ("Sequence length", "序列长度"),
    # recipes
    "recipe caption": (
        "Best validation score of the trials with each optimizer; their other settings differ too",
        "使用各优化器的试验中的最佳验证分数（其余设置也不相同）",
    ),
    "spread": ("Range", "差距"),
    "spreads": (
        "Within one architecture, changing the recipe changes the score by {within} (median); across architectures, "
        "each with its best recipe, the scores span {between}.",
        "同一架构内，更换训练配方使分数变化 {within}（中位数）；各架构均取其最佳配方时，分数相差 {between}。",
    ),
    "recipe counts more": (
        "In this comparison, the recipe matters more than the architecture.",
        "在本次比较中，训练配方的影响大于架构。",
    ),
    "architecture counts more": (
        "In this comparison, the architecture matters more than the recipe.",
        "在本次比较中，架构的影响大于训练配方。",
    ),
    "both count": ("In this comparison, both matter about equally.", "在本次比较中，两者的影响相当。"),
    # samples
    "samples remark": (
        "The same input (bold), continued by each model; not cherry-picked.",
        "各模型对同一输入（粗体）的续写，未经挑选。",
    ),
    "samples remark.row": (
        "The output of each model for the first row of the test set, not cherry-picked.",
        "各模型对测试集第一条样本的输出，未经挑选。",
    ),
    "samples remark.source": (
        "The output of each model for the first source of the test set, not cherry-picked.",
        "各模型对测试集第一条源文本的输出，未经挑选。",
    ),
    "sample input": ("Input", "输入"),
    "sample reference": ("Reference", "参考答案"),
    # the protocol
    "data caption": ("Data", "数据"),
    "part": ("Split", "数据集"),
    "file": ("File", "文件"),
    "bytes": ("Bytes", "字节数"),
    "tokens": ("Tokens", "词元数"),
    "hash": ("Hash", "哈希值"),
    "part.train": ("training", "训练集"),
    "part.valid": ("validation", "验证集"),
    "part.test": ("test", "测试集"),
    "rules caption": ("Settings, the same for every model", "比较设置（各模型相同）"),
    "item": ("Item", "项目"),
    "value": ("Value", "取值"),
    "task": ("Task", "任务"),
    "metric": ("Metric", "指标"),
    "scored": ("Scoring", "评分方式"),
    "size all": ("{count} parameters in total", "共 {count} 个参数"),
    "size backbone": (
        "{count} parameters, excluding embeddings and output head",
        "{count} 个参数（不计词嵌入和输出层）",
    ),
    "budget": ("Training budget", "训练预算"),
    "size own": ("; with the size of their weights: {names}", "；沿用自身权重的规模：{names}"),
    "tokenizers": ("Tokenizers", "分词器"),
    "tokenizers value": (
        "{count}: pretrained weights bring their own; entries are ranked by a score that does not depend on it. "
        "Lengths and costs in tokens are those of each tokenizer",
        "{count} 个：预训练权重自带分词器；排名所用的分数与分词器无关。以词元计的长度和开销按各自的分词器计算",
    ),
    "budget.bytes": ("{amount} bytes of text", "{amount} 字节文本"),
    "budget.tokens": ("{amount} tokens", "{amount} 词元"),
    "budget.seconds": ("{amount} seconds", "{amount} 秒"),
    "budget.seconds.cpu": ("{amount} seconds of CPU time", "{amount} 秒 CPU 时间"),
    "tuning": ("Tuning trials per model", "每个模型的调参试验次数"),
    "trial share": ("{trials}, each with {share} of the budget", "{trials}，每次使用预算的 {share}"),
    "none": ("none", "无"),
    "from to": ("{low} to {high}", "{low} 至 {high}"),
    "seeds": ("Seeds", "随机种子"),
    "shared": ("Shared options", "共用选项"),
    "plan": ("Analysis plan", "分析计划"),
    "plan value": (
        "fixed before the first run, SHA-256 {hash}; look {look} at the results; changes to the plan since: {changes}",
        "在首次运行之前确定，SHA-256 {hash}；第 {look} 次查看结果；此后对计划的修改：{changes} 次",
    ),
    "judged": ("Statistical tests", "统计检验"),
    "judged by": (
        "{share} confidence intervals of scores; differences: {all} for all pairs together (Welch’s t at Šidák’s "
        "level); margin of equivalence: {margin}",
        "分数取 {share} 置信区间；差异对所有模型对同时取 {all}（Welch t 检验，Šidák 校正）；等价容差 {margin}",
    ),
    "where": ("Environment", "运行环境"),
    "where value": (
        "{on}, {device}; parallel jobs: {jobs}, threads per job: {threads}",
        "{on}，{device}；并行任务数 {jobs}，每个任务的线程数 {threads}",
    ),
    "on.local": ("local", "本机"),
    "on.ray": ("Ray cluster", "Ray 集群"),
    "started": ("Started", "开始时间"),
    "time taken": ("Time", "用时"),
    "time value": (
        "{wall} elapsed; {training} in training runs (with validation and scoring), parallel jobs: {jobs}",
        "实际用时 {wall}；各次训练（含验证与评分）合计 {training}，并行任务数 {jobs}",
    ),
    "overhead": ("Worker time outside of training runs", "工作进程在训练之外的用时"),
    "overhead value": ("{share} of the time spent in training runs", "相当于训练用时的 {share}"),
    "outside.probes": ("recall probes {time}", "回忆测试 {time}"),
    "outside.measuring": ("measuring costs {time}", "测量开销 {time}"),
    "outside.starting": ("starting {time}", "启动 {time}"),
    "outside.idle": ("waiting {time}", "等待 {time}"),
    "busy": (
        "The machine was busy with other work: a final run took up to {ratio} times its CPU time.",
        "运行期间机器还在处理其他任务：最终训练的实际用时最多达到其 CPU 时间的 {ratio} 倍。",
    ),
    "busy.threads": (
        "A final run took up to {ratio} times the CPU time of its main thread: the machine was busy with other work, "
        "or the threads of a run waited for each other.",
        "最终训练的实际用时最多达到其主线程 CPU 时间的 {ratio} 倍：机器还在处理其他任务，或同一次训练的线程互相等待。",
    ),
    "busy figures": (
        "Elapsed times and latencies may be longer than on an idle machine; training speeds of the runs count CPU time "
        "and vary less.",
        "实际用时和延迟可能比空闲机器上长；各次训练的速度按 CPU 时间计算，受影响较小。",
    ),
    "unstable": (
        "“≈” marks a measurement that did not settle within 5 % (repeated turns disagreed, or a longer context seemed "
        "cheaper than a shorter one).",
        "“≈”表示该测量未稳定在 5 % 以内（多次测量不一致，或较长上下文的开销看似低于较短上下文）。",
    ),
    "busy scores": (
        "Scores are not affected, because the budget is not a time.",
        "分数不受影响，因为预算不以时间计。",
    ),
    "busy scores.seconds": (
        "Scores are less affected, because seconds of the budget are counted as CPU time.",
        "分数受影响较小，因为预算的秒数按 CPU 时间计算。",
    ),
    "versions": ("Versions", "版本"),
    "models caption": ("Configuration of each model", "各模型的配置"),
    "given": ("User options", "用户指定"),
    "config": ("Model configuration", "模型配置"),
    "tuned": ("Selected by the search", "搜索选定"),
    "whole command": ("The whole comparison", "整个比较"),
    "first run of": ("{name}, first run", "{name} 的首次训练"),
}
WORDS = {**_OWN, **ASPECTS, **LADDER, **SHOWING, **TUNING}


speaker = partial(Speaker, words=WORDS)
