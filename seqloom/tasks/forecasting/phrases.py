"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("recursive, one step at a time", "递归策略，每次一步"),
    ("combined, {} steps at a time", "组合策略，每次 {} 步"),
    ("direct, all steps at once", "直接策略，一次给出所有步"),
    ("horizon {}", "预测长度 {}"),
    ("context {}", "上下文 {}"),
    ("rolling origin", "滚动起点"),
    ("stride {}", "步幅 {}"),
    ("{} of {} windows, evenly spaced", "从 {1} 个窗口中等间隔选取 {0} 个"),
    ("{} windows", "{} 个窗口"),
    ("each window scaled ({})", "每个窗口单独缩放（{}）"),
    ("errors in data units", "误差以数据的单位计"),
    ("errors in training standard deviations", "误差以训练集标准差为单位"),
    ("intervals from {} sample paths of {} windows", "区间取自 {1} 个窗口的 {0} 条采样路径"),
    ("intervals from {} sample paths", "区间取自 {} 条采样路径"),
    ("intervals calibrated on the validation set", "区间在验证集上校准"),
    ("MAPE without {} actual values of 0", "MAPE 不计 {} 个为 0 的真实值"),
    ("one step ahead worse than repeating the last value (RMSE {}, {})", "第一步的预测不如重复最近值（RMSE {0}，{1}）"),
)
