"""Shared by all pages: the HTML shell, style sheets, charts, number formats and texts in English and Chinese."""
