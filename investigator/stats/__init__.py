"""Statistics as pure functions on arrays: no files, no clock, no other part of the project.

``process`` (passes to one value a process), ``intervals`` (rounds to an estimate with an exact interval),
``states`` (processes that fall into two states), ``verdict`` (the rule), ``published`` (the rule of others,
for comparison), ``slopes`` (what a row and a cell cost), ``simulate`` (how often the rule is wrong).
"""
