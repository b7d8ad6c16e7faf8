"""Remarks and names that views and tasks give in English, in Chinese: sentences as patterns, names word by word."""

from __future__ import annotations

SENTENCES: dict[str, str] = {  # of a whole remark: its Chinese, in which $1 stands for the first group
    r"this model has no attention weights; look at its memory, gradients or influence instead": (
        "该模型没有注意力权重；可改看其记忆、梯度或影响"
    ),
    r"this model has no recurrent memory; look at its attention, gradients or influence instead": (
        "该模型没有循环记忆；可改看其注意力、梯度或影响"
    ),
    r"this model has no attention to walk through; .*": "该模型没有可逐步计算的注意力；可改看其记忆或影响",
    r"this model learns by counting or in closed form: .*": (
        "该模型通过计数或闭式解学习：没有可查看的嵌入或层；可以显示的是预测"
    ),
    r"this model has no alignment.*": "该模型没有对齐",
    r"this model has no layers one after another; .*": "该模型没有逐层堆叠的层；可以显示影响和预测",
    r"between the last layer and the head this model does more than normalise, .*": (
        "在最后一层与输出层之间，该模型不只做归一化（例如还关注源文本），因此较早的层无法代替最后一层；可以显示影响和预测"
    ),
    r"the head was trained on the last layer only: .*": "输出层只针对最后一层训练：较低的层可能含有它读不出的信息",
    r"each side by itself: .*": "源端与目标端分别计算：跨端的部分见对源文本的注意力图",
    r"occlusion: ([\d,]+) positions, more than ([\d,]+)": "遮挡法未计算：$1 个位置，多于 $2",
    r"the mean embedding of the vocabulary": "词表的平均嵌入",
    r"the mean embedding of this input": "该输入的平均嵌入",
    r"the mean of the input over time": "输入在时间上的平均值",
    r"A has ([\d,]+) positions and B ([\d,]+): .*": (
        "A 有 $1 个位置，B 有 $2 个：从末尾开始对应，A 中没有对应的位置被省略"
    ),
    r"A and B differ by only (.*) in score: .*": "A 与 B 的得分仅相差 $1：如此小的差值，其比例说明不了什么",
    r"(\d+) damaged checkpoints? left out": "略过 $1 个损坏的检查点",
    r"only the first ([\d,]+) rows of the file were read": "仅读取了文件的前 $1 行",
    r"([\d,]+) rows left out; the first: (.*)": "略过 $1 行；第一行的原因：$2",
    r"A and B have the same score: .*": "A 与 B 的得分相同：效果为得分的变化，而不是差值的比例",
    r"the product of Jacobians of (.*): the text is too long for its size": "$1 的雅可比矩阵之积未计算：文本过长",
    r"(\d+) of (\d+) tokens are not in the vocabulary: .*": "$2 个词元中有 $1 个不在词表中：模型将其读作未知词元",
    r"the input has ([\d,]+) positions, more than the ([\d,]+) that .*": (
        "输入有 $1 个位置，多于模型能读取的 $2 个：其余部分被截断"
    ),
    r"the source is too long for the model: its end was cut off": "源文本对该模型过长：末尾被截断",
    r"the passage is longer than the model reads: .*": "段落长于模型能读取的长度：仅显示包含答案的窗口",
    r"a learned function of q and k": "q 与 k 的可学习函数",
    r"other than softmax: sparse, local or hard": "非 softmax：稀疏、局部或硬对齐",
    r"the whole sequence": "整个序列",
}

NAMES: dict[str, str] = {  # parts of the names of layers, curves and maps
    "memory, all layers": "记忆，所有层",
    "rollout, source": "rollout，源",
    "rollout, target": "rollout，目标",
    "encoder layer": "编码器层",
    "decoder layer": "解码器层",
    "decoder memory": "解码器记忆",
    "encoder attention": "编码器注意力",
    "decoder attention": "解码器注意力",
    "learning rate": "学习率",
    "weight change": "权重变化",
    "loss before": "更新前损失",
    "loss after": "更新后损失",
    "forget gate": "遗忘门",
    "input gate": "输入门",
    "output gate": "输出门",
    "update gate": "更新门",
    "reset gate": "重置门",
    "attention": "注意力",
    "embedding": "嵌入",
    "backwards": "反向",
    "candidate": "候选",
    "pooling": "池化",
    "source": "源",
    "memory": "记忆",
    "output": "输出",
    "forget": "遗忘",
    "update": "更新",
    "hidden": "隐藏",
    "change": "变化",
    "closed": "关闭",
    "layer": "层",
    "state": "状态",
    "carry": "细胞状态",
    "input": "输入",
    "reset": "重置",
    "write": "写入",
    "head": "头",
    "mean": "均值",
    "norm": "范数",
    "keep": "保留",
    "open": "打开",
    "new": "候选",
    "hop": "跳",
}
