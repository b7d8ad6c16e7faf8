"""The report of a comparison: pure functions from result.json to HTML, Markdown and the terminal. Loads no model."""
