"""Tiny private trainings with the real Opacus."""

from private_training import one_thread, private

__all__ = ["one_thread", "private"]
