"""Nasr, Song, Thakurta, Papernot and Carlini, IEEE S&P 2021."""
