"""Every page we write: one HTML shell, one style sheet, chart helpers, numbers and words in English and Chinese."""
