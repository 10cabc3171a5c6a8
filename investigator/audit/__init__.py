"""`investigate audit`: what somebody else's published figures can and cannot support.

``reading`` turns a file into a `figures.Sheet`, whatever its format; ``book`` puts the sheets side by side;
``weigh`` computes every change that the same figures would justify; ``checks`` says what they leave open,
each with the field or line it comes from; ``judgement`` joins them; ``rerun`` has a claim measured by this
tool, and ``adjudicate`` compares the two.
"""
