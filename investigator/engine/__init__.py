"""The one door to the container engine; `interface` says what an engine is."""
