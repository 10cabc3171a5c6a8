"""Planted slowdowns: whether the tool finds what is known to be there, names its layer and its size.

A trial is the ordinary pipeline on two environments that differ in one planted thing. `places` says what can
be planted, `trials` which trials there are, `pilot` how much of it makes so many percent, `bench` measures a
screen of trials, `run` does it all, `judge` compares what was found with what was planted, `report` shows it.
"""
