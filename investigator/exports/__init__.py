"""A run in the formats of other tools: `investigate export`. One module a format, `formats` lists them."""
