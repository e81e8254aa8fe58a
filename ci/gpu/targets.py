"""What the tables of ci/gpu/tables.py are to reach. Pure: numbers in, verdicts out; None is a number that
there was not. Each verdict is whether the target is met, and a line that says what, measured, and to reach.
"""
MIB = 1 << 20

RATIO = 1.00  # of the bandwidth of the better row without the plugin, from 1 MiB on
SHORT_TIME = 1.05  # of the time of the better row without the plugin, below 1 MiB
ENDS_OF_A_NIC = 4  # of the two links of a NIC in a ring: each end of them fails over
FAULTS = 30  # that a distribution of pauses is of
PAUSE_P50_MS = 10
PAUSE_MAX_MS = {"port_down": 50, "connection_reset": 50, "blackhole": 200}
SLOW_TIME = 1.05  # of the time of the balance model, while a NIC is slow
LOST_SHARE = 0.97  # of the bandwidth that is left, while a NIC is gone
BACK_MS = 2000  # from the NIC's return until all of the bandwidth is used


def verdict(met, what, measured, to_reach):
    return met, f"{'met' if met else 'MISSED'}: {what}, measured {measured}, to reach {to_reach}"


def at_most(what, value, limit, unit):
    measured = "nothing" if value is None else f"{value:.1f}{unit}"
    return verdict(value is not None and value <= limit, what, measured, f"at most {limit}{unit}")


def balance_model(rails, rate):
    """Time over that of before, when one of the rails of a node has `rate` of its own, 0 to 1, and the data
    is spread over all that is left."""
    return rails / (rails - 1 + rate)


def of_sweep(ratios, size_text):
    """`ratios`: the plugin's bandwidth over the best without it, by size in bytes."""
    verdicts = []
    for what, least, to_reach, sizes in (
            ("bandwidth from 1 MiB on over the best without the plugin", RATIO, f"at least {RATIO:.2f}",
             [size for size in sorted(ratios) if size >= MIB]),
            ("bandwidth below 1 MiB over the best without the plugin", 1 / SHORT_TIME,
             f"at least {1 / SHORT_TIME:.3f}, which is {SHORT_TIME} of its time",
             [size for size in sorted(ratios) if size < MIB])):
        if not sizes:
            continue
        short = [size for size in sizes if ratios[size] < least]
        told = short or [min(sizes, key=ratios.get)]
        measured = ", ".join(f"{ratios[size]:.4f} at {size_text(size)}" for size in told)
        verdicts.append(verdict(not short, what, ("" if short else "the least ") + measured, to_reach))
    return verdicts


def of_pauses(kind, struck, counted, p50, longest, wrong, failovers):
    """`struck`: faults, `counted`: those that struck a whole network; ms; `wrong`: elements, of all calls;
    `failovers`: of all processes; a NIC has a neighbour on either side, which sees it as well as its own node."""
    verdicts = [verdict(counted >= FAULTS, f"{kind}: faults counted", counted, f"at least {FAULTS}"),
                at_most(f"{kind}: pause p50", p50, PAUSE_P50_MS, " ms")]
    if kind in PAUSE_MAX_MS:
        verdicts.append(at_most(f"{kind}: longest pause", longest, PAUSE_MAX_MS[kind], " ms"))
    least = ENDS_OF_A_NIC * struck
    verdicts.append(verdict(failovers is not None and failovers >= least, f"{kind}: failovers",
                            "nothing" if failovers is None else failovers, f"at least {least}"))
    verdicts.append(verdict(wrong == 0, f"{kind}: elements that are wrong",
                            "nothing" if wrong is None else wrong, 0))
    return verdicts


def of_slow(rails, rate, slowed):
    """A NIC that has `rate` of its own; `slowed`: time during over time before."""
    model = balance_model(rails, rate)
    return [verdict(slowed is not None and slowed <= SLOW_TIME * model,
                    f"1 of {rails} NICs at {rate:.0%}: time during / before",
                    "nothing" if slowed is None else f"{slowed:.3f}",
                    f"at most {SLOW_TIME * model:.3f}, which is {SLOW_TIME} of the balance model's {model:.3f}")]


def of_lost(rails, slowed, back_ms):
    """A NIC that is gone for a while; `back_ms`: from its return to the first call of full speed."""
    share = None if slowed is None else balance_model(rails, 0) / slowed
    return [verdict(share is not None and share >= LOST_SHARE,
                    f"1 of {rails} NICs gone: share used of the bandwidth that is left",
                    "nothing" if share is None else f"{share:.3f}", f"at least {LOST_SHARE}"),
            at_most(f"1 of {rails} NICs gone: full speed after its return", back_ms, BACK_MS, " ms")]
