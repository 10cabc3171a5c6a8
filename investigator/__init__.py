"""investigate: which Node release made a native SQLite addon slower, by how much, and in which layer."""

__version__ = "0.1.0"
