"""Attribute inference against the user's own training (Cherubin et al. 2024).

records with every value ──► clipped gradients ──► worst pair of a step ──► AttributeRisk
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy

if TYPE_CHECKING:
    from dprime.attributes.attribute import Attribute
    from dprime.attributes.inference import AttributeInference
    from dprime.attributes.risks import AttributeRisk

__getattr__, __dir__ = lazy(
    __name__,
    {},
    library="opacus",
    needing={"Attribute": "attribute", "AttributeInference": "inference", "AttributeRisk": "risks"},
)

__all__ = ["Attribute", "AttributeInference", "AttributeRisk"]
