"""`investigate validate`: does a fix bring the loss back, and does it cost anything elsewhere?

`builds` reads what the user calls a fix; the run itself is an ordinary one with three labelled environments;
`judge` makes the answer from its rounds.
"""
