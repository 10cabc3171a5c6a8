"""Where Node builds come from: `interface` says what a build and a source are, one file a source."""
