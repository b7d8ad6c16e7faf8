"""The texts about the aspects besides the score, in English and Chinese side by side."""

from __future__ import annotations

ASPECTS: dict[str, tuple[str, str]] = {
    "aspect": ("Aspect", "方面"),
    "aspects caption": ("Aspects, side by side", "各方面对照"),
    "aspect structure": ("Structure", "结构"),
    "aspect structure small": ("size of the state", "状态大小"),
    "aspect length": ("Sequence length", "序列长度"),
    "aspect length small": ("loss at and beyond the training length", "训练长度处及超出后的损失"),
    "aspect length small.source": ("output accuracy by source length", "各源文本长度下的输出准确率"),
    "aspect dependency": ("Dependency", "依赖距离"),
    "aspect dependency small": ("longest distance recalled", "可回忆的最远距离"),
    "aspect size": ("Size", "规模"),
    "aspect size small": ("parameters, compute per token", "参数量与每词元计算量"),
    "aspect training": ("Training and parallelism", "训练与并行"),
    "aspect training small": ("speed on short and long sequences", "短序列与长序列上的速度"),
    "aspect interpretability": ("Interpretability", "可解释性"),
    "aspect interpretability small": ("internal tensors that can be recorded", "可记录的内部张量"),
    "aspect transfer": ("Transfer", "迁移"),
    "aspect transfer small": ("score without and with pre-training", "无预训练与有预训练的分数"),
    "state constant": ("{bytes}, constant", "{bytes}，恒定"),
    "state grows": ("{first} to {last}, growing", "{first} 至 {last}，随上下文增长"),
    "loss at": ("{loss} at {length}", "位置 {length}：{loss}"),
    "loss beyond": ("{loss} at {first}–{last}", "位置 {first}–{last}：{loss}"),
    "right at": ("{share} correct at {first}–{last}", "长度 {first}–{last}：{share} 正确"),
    "reaches": ("{distance} tokens", "{distance} 个词元"),
    "reaches the end": ("{distance} tokens, the longest tested", "{distance} 个词元（所测最长距离）"),
    "reaches nothing": ("none of the tested distances", "所测距离均未达到"),
    "recalled by": ("recall there {low} to {high} over seeds", "各随机种子在该距离的回忆准确率 {low} 至 {high}"),
    "not learned": (
        "not learned in the {steps} steps given, so nothing can be said",
        "在给定的 {steps} 步内未学会，无法判断",
    ),
    "count of parameters": ("{count} parameters", "{count} 个参数"),
    "count of stored": ("{count} stored values", "{count} 个存储数值"),
    "work": ("{work} FLOPs per token", "每词元 {work} FLOPs"),
    "speed at": ("{speed} tokens/s at {length}", "长度 {length}：{speed} 词元/秒"),
    "taps": ("named tensors: {count}", "具名张量：{count} 个"),
    "transfer": (
        "not measured; --pretrain FILE measures it, with raw text to pre-train on",
        "未测量；可用 --pretrain 指定预训练文本来测量",
    ),
    "transfer gain": ("{before} → {after} with {examples} examples", "{examples} 条标注样本：{before} → {after}"),
    "few chart": ("Score by number of labelled rows", "分数与标注样本数"),
    "few rows": ("Labelled rows", "标注样本数"),
    "few per label": ("{count} per label", "每类 {count} 条"),
    "few all": ("all", "全部"),
    "few remark": (
        "Draws of rows: {seeds}; means; the 95 % intervals in the table include the luck of the draws and of the test "
        "rows. On few rows every model has the settings that fit would choose for so many, not those tuned here, and "
        "is selected with no more validation rows than "
        "training rows; {scored} rows of the test set are scored. Tokenizers fitted to the data have seen all "
        "training texts, without labels. The last point is the final runs.",
        "抽样 {seeds} 次取均值；表中的 95 % 区间已计入抽样和测试样本的偶然性。"
        "样本少时，各模型采用 fit 针对该数量选择的设置，而非本次调参的结果，"
        "且挑选模型所用的验证样本不多于训练样本；对测试集的 {scored} 条样本评分。在数据上训练的分词器见过全部训练"
        "文本（不含标签）。最后一点为最终运行。",
    ),
    "transfer chart": ("With and without pre-training", "有无预训练的对照"),
    "with pre-training": ("with pre-training", "有预训练"),
    "without pre-training": ("from scratch", "从头训练"),
    "labelled examples": ("Labelled examples", "标注样本数"),
    "gain": ("Gain", "提升"),
    "transfer remark": (
        "Filled: initialised from an encoder pre-trained on raw text. Hollow: trained from scratch on the same rows, "
        "with the same settings and budget. Pre-training: {taught}.",
        "实心：用在原始文本上预训练的编码器初始化。空心：从头训练，样本、设置与预算相同。预训练：{taught}。",
    ),
    "reach remark": (
        "Dependency: the longest distance at which recall accuracy is above the midpoint between chance and 1, for a "
        "small model of each kind in its own shape, trained briefly on a synthetic task (mean over seeds). It is not "
        "learned if the model fails even at distance 1.",
        "依赖距离：回忆准确率高于随机水平与 1 的中点的最远距离。用各架构自身形状的小模型在合成任务上短暂训练后测得，"
        "取各随机种子的均值；若连距离 1 都答不对，则视为未学会。",
    ),
}
