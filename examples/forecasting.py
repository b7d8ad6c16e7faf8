"""Sunspots: eleven years ahead, with intervals, and scored on years that were never seen.

python examples/forecasting.py
"""

import numpy as np
from sklearn.model_selection import TimeSeriesSplit, cross_val_score

from seqloom import Forecaster
from seqloom.data.samples import find_sample

rows = list(find_sample("sample:sunspots", "series").read())  # {"year": 1700, "sunspots": 5.0}, ...
series = np.array([row["sunspots"] for row in rows])
past, future = series[:-11], series[-11:]

naive = Forecaster("naive", horizon=11).fit(past)  # repeats the last season, or the last value
linear = Forecaster("linear", horizon=11).fit(past)

forecast = linear.predict()
lower, upper = linear.predict_interval(0.8)
print("year  actual  forecast  80 % interval")
for row, value, low, high in zip(rows[-11:], forecast, lower, upper, strict=True):
    print(f"{row['year']}  {row['sunspots']:6.1f}  {value:8.1f}  {low:6.1f} to {high:.1f}")

# One cycle is one draw: five of them, each forecast from the years before it, say more.
folds = TimeSeriesSplit(5, test_size=11)
for name, model in (("naive", naive), ("linear", linear)):
    error = np.abs(model.predict() - future).mean()
    scores = cross_val_score(model, series, cv=folds)
    print(f"{name}: mean error {error:.1f}; R² over five cycles {scores.mean():.2f} (from {scores.min():.2f})")
