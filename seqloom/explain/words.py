"""Texts of the explanation page, in English and Chinese."""

from __future__ import annotations

from seqloom.pages.words import WORDS as SHARED
from seqloom.pages.words import Pair

WORDS: dict[str, Pair] = {
    "made by": SHARED["made by"],
    "title": ("Inside {name}", "模型内部：{name}"),
    "model": ("model", "模型"),
    "task": ("task", "任务"),
    "run": ("run", "运行目录"),
    "text": ("text", "文本"),
    "second": ("second text", "第二段文本"),
    "passage": ("passage", "段落"),
    "question": ("question", "问题"),
    "context": ("passage", "段落"),
    "source": ("text", "文本"),
    "row": ("row of the file", "文件中的行"),
    "input": ("input", "输入"),
    "output": ("output", "输出"),
    "colon": SHARED["colon"],
    "blocks": (
        "The input is long: each cell stands for {step} × {step} tokens and shows the strongest value among them.",
        "输入较长：每个单元格代表 {step} × {step} 个词元，显示其中最强的值。",
    ),
    "many tokens": (
        "Only the first {shown} of {count} tokens are shown; the data file has all of them.",
        "仅显示 {count} 个词元中的前 {shown} 个；数据文件包含全部词元。",
    ),
    # predictions
    "predictions": ("Predictions", "预测"),
    "predictions.about": (
        "The stronger the colour, the less probable the model found the token. Point at a token, tap it or move with "
        "the arrow keys to see its probability, rank and loss, and the alternatives.",
        "颜色越深，模型认为该词元的概率越低。将指针移到词元上、点按它或用方向键移动，可查看其概率、排名、损失以及备选项。",
    ),
    "predictions.label": (
        "What the model predicts from this input.",
        "模型对该输入的预测。",
    ),
    "predictions.value": ("The forecast, in scaled units.", "预测值（缩放后的单位）。"),
    "probability": ("probability", "概率"),
    "rank": ("rank", "排名"),
    "loss": ("loss (nats)", "损失（nat）"),
    "value": ("value", "数值"),
    "alternatives": ("most probable", "概率最高"),
    "mean loss": (
        "mean loss: {loss} nats per token, perplexity {perplexity}",
        "平均损失：每词元 {loss} nat，困惑度 {perplexity}",
    ),
    "predicted": ("predicted", "模型预测"),
    "given": ("given", "给定"),
    "not predicted": ("the first token is not predicted", "第一个词元不作预测"),
    # influence
    "influence": ("Influence", "影响"),
    "influence.about": (
        "How much each input token contributed to each output: blue speaks for it, orange against it. Occlusion: how "
        "far the score falls when the token is blanked out. Integrated gradients: the same by following the gradient "
        "from a blank input. Choose an output to colour the text by its influences.",
        "每个输入词元对每个输出的贡献：蓝色表示支持，橙色表示反对。遮挡法：遮住该词元后得分下降多少。积分梯度：沿梯度从空白输入累积得到的"
        "同一量。选择一个输出，文本将按其影响着色。",
    ),
    "against.about": (
        "Scores are differences: why “{label}” and not “{against}”.",
        "得分为差值：为什么是“{label}”而不是“{against}”。",
    ),
    "method": ("method", "方法"),
    "occlusion": ("occlusion", "遮挡法"),
    "gradients.method": ("integrated gradients", "积分梯度"),
    "influence of": ("influence on", "对其影响："),
    "strongest": ("strongest", "最强"),
    "accounted": (
        "Integrated gradients account for {share} of the score difference to the baseline ({baseline}).",
        "积分梯度解释了与基线（{baseline}）之间得分差的 {share}。",
    ),
    "not integrated": (
        "Integrated gradients were computed for {count} of {all} outputs.",
        "对 {all} 个输出中的 {count} 个计算了积分梯度。",
    ),
    "rows and columns": ("rows: outputs; columns: inputs", "行：输出；列：输入"),
    "map": ("map of all outputs", "全部输出的影响图"),
    # attention
    "attention": ("Attention", "注意力"),
    "attention.about": (
        "Attention shows where a layer takes information from, not why the model decided as it did: attention is not "
        "attribution. Choose a head to enlarge it.",
        "注意力显示某一层从哪里获取信息，而不是模型为何如此决定：注意力不等于归因。点击某个头可放大。",
    ),
    "correlation": (
        "Rank correlation of attention with the influence map on this input: {value}.",
        "在该输入上，注意力与影响图的秩相关系数：{value}。",
    ),
    "correlation.short": ("correlation with influence", "与影响的相关"),
    "where": ("where", "位置"),
    "target": ("target", "目标"),
    "head": ("head", "头"),
    "layer": ("layer", "层"),
    "rollout": ("rollout: attention multiplied through all layers", "rollout：逐层相乘的注意力"),
    "heads": ("layers and heads", "层与头"),
    "heads.table": ("Numbers of each head", "每个头的数值"),
    "entropy": ("entropy (nats)", "熵（nat）"),
    "distance": ("mean distance", "平均距离"),
    "largest": ("largest weight", "最大权重"),
    "weight": ("weight", "权重"),
    # memory
    "memory": ("Memory", "记忆"),
    "memory.about": (
        "What the state does while the model reads: how far gates are open at each token, on average over their units, "
        "and the units that vary most over the text.",
        "模型阅读时状态的变化：每个词元处门的平均开度，以及在文本上变化最大的单元。",
    ),
    "coloured by": ("coloured by", "着色依据："),
    "nearest": ("nearest token", "最近的词元"),
    "nearest.about": (
        "What the output layer would say after each token if it saw this layer's output.",
        "若输出层看到该层的输出，它在每个词元之后会给出的预测。",
    ),
    "shares": (
        "Share of units that are open (above {open}) or closed (below {closed})",
        "打开（高于 {open}）或关闭（低于 {closed}）的单元比例",
    ),
    "units": ("Most selective units", "最具选择性的单元"),
    "unit": ("unit", "单元"),
    "position": ("position", "位置"),
    "mean": ("mean", "均值"),
    # lens
    "lens": ("Lens", "逐层透镜"),
    "lens.about": (
        "What each layer would predict if it were the last one: its best token, coloured by the probability of the "
        "token that is explained.",
        "如果该层是最后一层，它会预测什么：显示其最佳词元，颜色表示被解释词元的概率。",
    ),
    "best": ("best", "最佳"),
    # patching
    "patching": ("Patching", "状态替换"),
    "patching.about": (
        "The state of each layer at each token is replaced by that of the other text; a cell shows how far the score "
        "then moves from this text's (0) to the other's (1).",
        "将每一层在每个词元处的状态替换为另一段文本的状态；单元格显示得分从本文本（0）向另一文本（1）移动的比例。",
    ),
    "patching.scores": (
        "Output {output}: log-probability of “{second}” minus that of “{first}”: here {here}, there {there}.",
        "输出 {output}：“{second}”与“{first}”的对数概率之差：本文本为 {here}，另一文本为 {there}。",
    ),
    "patching.same": (
        "Output {output}, “{first}”: score {here} here, {there} in the other text.",
        "输出 {output}，“{first}”：本文本得分 {here}，另一文本 {there}。",
    ),
    "effect": ("effect", "效果"),
    # alignment
    "alignment": ("Alignment", "对齐"),
    "alignment.about": (
        "The mean attention to the source while each output token was written.",
        "写出每个输出词元时对源文本的平均注意力。",
    ),
    "alignment.maps": ("Numbers of each map", "每张图的数值"),
    "forward": ("steps that do not move back", "未回退的步骤"),
    "error rate": ("alignment error rate", "对齐错误率"),
    # gradients
    "gradients": ("Gradient microscope", "梯度显微镜"),
    "gradients.about": (
        "The norm of the gradient of the last loss with respect to the state at each token, against how many tokens "
        "back that is.",
        "最后一个损失对各处状态的梯度范数，横轴为向前相隔的词元数。",
    ),
    "slopes": ("Slopes", "斜率"),
    "slope": ("slope of the logarithm", "对数的斜率"),
    "factor": ("factor per token", "每个词元的倍数"),
    "jacobians": ("Product of Jacobians", "雅可比矩阵之积"),
    "jacobians.about": (
        "The spectral norm of the derivative of the last state with respect to earlier ones.",
        "最后状态对先前状态的导数的谱范数。",
    ),
    "spectral norm": ("spectral norm", "谱范数"),
    "eigenvalues": ("Eigenvalues of the recurrent matrix", "循环矩阵的特征值"),
    "eigenvalues.about": (
        "By itself the matrix lets gradients grow along eigenvalues outside the unit circle "
        "and fade along those inside; gates and saturated units change that.",
        "仅就矩阵本身而言，单位圆外的特征值使梯度增长，圆内的使其衰减；门控和饱和的单元会改变这一点。",
    ),
    "radius": ("spectral radius", "谱半径"),
    "step": ("training step", "训练步"),
    "training": ("Gradient norms in training", "训练中的梯度范数"),
    "training.norm": ("before clipping", "裁剪前"),
    "training.clipped norm": ("after clipping", "裁剪后"),
    "lag": ("tokens back", "向前相隔的词元数"),
    "norm": ("gradient norm", "梯度范数"),
    # walk
    "walk": ("Number by number", "逐步数值演算"),
    "walk.about": (
        "Attention computed step by step on this input: queries, keys and values, scores, weights, context.",
        "在该输入上逐步计算注意力：查询、键和值、得分、权重、上下文。",
    ),
    "walk.where": (
        "{place}; the query is “{query}”. Score: {score}; alignment: {align}.",
        "{place}；查询为“{query}”。得分：{score}；对齐函数：{align}。",
    ),
    "walk.query": ("Query q", "查询 q"),
    "walk.scores": ("Scores: how well each key fits the query", "得分：每个键与查询的匹配程度"),
    "walk.weights": ("Weights: scores as shares of one", "权重：归一化后的得分"),
    "walk.context": ("Context: the mixture of the values", "上下文：值的加权和"),
    "walk.context.about": (
        "The first numbers of the context, as sums of weights times values, beside what passes in the model.",
        "上下文的前几个数值：权重与值的乘积之和，旁边是模型中实际通过的数值。",
    ),
    "walk.key": ("key", "键"),
    "walk.score": ("score e", "得分 e"),
    "walk.model": ("in the model", "模型中"),
    "walk.keys": ("All keys", "全部键"),
    "walk.values": ("All values", "全部值"),
    # two runs
    "difference": ("Difference", "差异"),
    "difference.about": (
        "{second} minus {first}, output by output: blue is where {second} is better, orange where {first} is.",
        "{second} 减 {first}，逐个输出：蓝色表示 {second} 更好，橙色表示 {first} 更好。",
    ),
    "difference.value": (
        "{second} minus {first}, output by output: blue is where {second} is higher, orange where {first} is.",
        "{second} 减 {first}，逐个输出：蓝色表示 {second} 更高，橙色表示 {first} 更高。",
    ),
    "difference.stretch": (
        "The two read different tokens, so they are compared over stretches of text that end at a boundary of both; "
        "losses and influences are summed over each.",
        "两者的词元不同，因此按两者共有边界之间的文本段进行比较；损失与影响在每段内求和。",
    ),
    "difference.none": (
        "The two have no output in common, so their numbers cannot be subtracted; within one task, --target names an "
        "output for both to explain.",
        "两者没有共同的输出，数值无法相减；若任务相同，可用 --target 指定两者都要解释的输出。",
    ),
    "difference.mean": ("mean difference of the loss: {loss} nats", "损失的平均差异：{loss} nat"),
    "difference.bits": (
        "bits per byte: {first} and {second}",
        "每字节比特数：{first} 与 {second}",
    ),
    "difference.map": ("Difference of the influence maps", "影响图的差异"),
    # a file
    "worst": ("Worst errors", "最严重的错误"),
    "worst.about": (
        "The rows with the highest loss on what is true, of {count} rows; the text is coloured by its influence on the "
        "predicted output.",
        "在 {count} 行中，对真实答案损失最高的行；文本按其对预测输出的影响着色。",
    ),
    "truth": ("true", "真实值"),
    "prediction": ("predicted", "预测"),
    "calibration": ("Calibration", "校准"),
    "calibration.about": (
        "How often predictions of a given confidence are right. Expected calibration error: {error}; accuracy "
        "{accuracy} over {count} predictions.",
        "给定置信度的预测有多大比例是正确的。期望校准误差：{error}；在 {count} 个预测上的准确率为 {accuracy}。",
    ),
    "confidence": ("confidence", "置信度"),
    "accuracy": ("accuracy", "准确率"),
    "count": ("predictions", "预测数"),
    # the rest
    "missing": ("What cannot be shown for this model", "该模型无法显示的内容"),
    "notes": ("Remarks", "说明"),
    "data table": ("Data table", "数据表"),
}  # fmt: skip
