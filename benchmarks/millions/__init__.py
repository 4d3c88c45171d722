"""Measure `newfound discover` on a million texts, and what fitting on a sample costs."""
