"""Bernau, Eibl, Grassal, Keller and Kerschbaum, VLDB 2021."""
