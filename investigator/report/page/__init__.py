"""The view as report.html: one file with its figures, styles and scripts, and the figures alone.

`figures` decides which plots a run has, one module each kind makes their specs (Vega-Lite or Vega, plain
dictionaries), `draw` turns specs into pictures, `page` lays everything out.
"""
