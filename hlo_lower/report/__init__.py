"""Reports: records of scatters as text, JSON, Markdown and HTML."""
