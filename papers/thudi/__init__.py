"""Thudi, Shumailov, Boenisch and Papernot, TMLR 2024."""
