"""What a comparison is written to for people who take it elsewhere: report (HTML, Markdown), pair table (CSV, XLSX), mapping.

``finished`` reads a comparison from memory (command line) or from its folder (server) as the same columns; the writers know only those.
"""
