"""Forecasting: what comes next in a series of numbers, and how sure is that?"""

from seqloom.tasks.forecasting.task import Config, Forecasting

__all__ = ["Config", "Forecasting"]
