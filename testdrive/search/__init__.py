"""Searching the highest load that a drive takes: which values are tried, and what each trial came to."""
