"""What people read: one neutral view (`view`), renderers that only lay it out (`terminal`, `markdown`).

`summary` is the file for programs; it is computed from the same values, not from the view.
"""
