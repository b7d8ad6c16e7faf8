"""Forecasting: predict the next values of a time series, with prediction intervals."""

from seqloom.tasks.forecasting.task import Config, Forecasting

__all__ = ["Config", "Forecasting"]
