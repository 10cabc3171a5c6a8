"""Profiles: samples of a running worker, each stack named and given its layer."""
