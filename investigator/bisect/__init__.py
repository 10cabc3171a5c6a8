"""`investigate bisect`: which release changed the time of an operation.

``request`` (what is wanted, and the releases on the way), ``candidates`` (a release fetched and built, or the
reason why not), ``steps`` (one step measured), ``run`` (the search from start to result, resumable),
``result`` and ``render`` (what came of it), ``commits`` (the commits between two neighbours). The search
itself is `stats.bisection`.
"""
