"""Why a layer got slower: the addon's sources, its build, what else changed in Node, and the experiments.

``source`` (two header sets, or two releases, of the addon's own C++), ``build`` (flags, compiler, SQLite's
object, Node's build configuration), ``changes`` (what else two Node builds differ in), ``flags`` and
``ablation`` (the pair again under V8 flags), ``swap`` (one side's code path on the other side), ``shares``
(how much of a gap an experiment closes, exactly), ``cpp`` (just enough of the language to name functions and
conditions).
"""
