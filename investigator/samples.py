"""Raw events to the table of samples: one row a pass, units in the column names."""

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One timed pass of one cell: a row of measurements.csv."""

    round: int
    position: int
    environment: str
    twin: bool
    family: str
    op: str
    phase: str
    """``cold`` or ``pass``."""
    index: int
    calls: int
    start_ns: int
    wall_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    gc_pause_ns: int
    gc_count: int
    gc_scavenge_count: int
    gc_mark_sweep_count: int
    involuntary_switches: int
    voluntary_switches: int
    steal_pct: float
    """Share of CPU time stolen by the hypervisor during the invocation."""
    rss_bytes: int
    heap_used_bytes: int
    external_bytes: int
    disturbed: bool
    """Wall over CPU, steal or involuntary switches beyond the limits of design.md section 6: kept, marked."""
