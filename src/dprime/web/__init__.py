"""The explorer: one page, served on this machine, that answers while sliders move.

request ──► guard (Host, token, size, headers) ──► routes ──► answers (cached) ──► JSON
                                                     └──► runs folder ──► list, card, report
"""
