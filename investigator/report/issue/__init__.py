"""Texts for upstream trackers: one Markdown file for each regression, in the form of the tracker it is for.

`material` is what a run knows about one finding, `choose` which findings are regressions, `target` which
tracker they belong to; `words`, `sections` and `checklist` say it, `forms` puts it into the form, `gh` opens
it. Pure but for `gh`; `investigator.issues` reads the run folder.
"""
