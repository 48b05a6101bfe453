"""Syntax-aware local attention (Li et al. 2021, Findings of ACL)."""
