"""Findings: what in a result a person should check before it is used."""

from newfound.report.findings.checks import UNSURE, findings, pile_probability
from newfound.report.findings.finding import Finding, Item, percent

__all__ = ["UNSURE", "Finding", "Item", "findings", "percent", "pile_probability"]
