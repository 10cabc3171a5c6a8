"""Reproductions that need none of this program: written for a finding, run, kept only if they show it."""
