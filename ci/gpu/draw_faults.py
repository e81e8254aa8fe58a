"""Faults of scenarios/gpu, from a seed: those of ddp.yaml and protocols.yaml, and those of pauses over more rails.

    draw_faults.py --seed N [--faults 16] [--steps 500] [--nodes 4] [--rails 2] [--duration 800ms]
    draw_faults.py --seed N --in-turn KIND [--every 7] [--faults ...] [--nodes ...] [--rails ...] [--duration ...]

One fault in the first half of each of as many equal spans of the steps, the first span left out as warm-up,
so that no two are under way at a time. Of kind, NIC, step and progress in it all are equally likely.

With --in-turn all are of one kind, and one comes every so many steps, at a random progress of its step. A link of
a ring fails with the NIC of either of its ends, and is to stay whole for as long as can be in between: so the NICs
of every other node are struck in turn, half of the faults, and the others after a gap.

What it prints is a list for `faults` of a scenario, also on the command line:

    faultline run scenarios/gpu/ddp.yaml --set "faults=$(python3 ci/gpu/draw_faults.py --seed 8)"
"""
import argparse
import random
import sys

KINDS = ("port_down", "blackhole", "connection_reset")


def draw(seed, faults, steps, nodes, rails, duration):
    stream = random.Random(seed)

    def below(limit):
        return int(stream.random() * limit)

    span = steps / (faults + 1)
    for number in range(1, faults + 1):
        kind = KINDS[below(len(KINDS))]
        step = int(number * span) + below(max(1, span / 2))
        yield (f"{{kind: {kind}, target: {{node: {below(nodes)}, rail: {below(rails)}}}, "
               f"during: {{iteration: {step}, progress: {10 + below(81)}%}}, duration: {duration}}}")


def in_turn(kind, every, seed, faults, nodes, rails, duration):
    stream = random.Random(seed)
    step = every
    for parity in (0, 1):
        nics = [(node, rail) for node in range(parity, nodes, 2) for rail in range(rails)]
        for number in range(faults // 2 if parity else faults - faults // 2):
            node, rail = nics[number % len(nics)]
            yield (f"{{kind: {kind}, target: {{node: {node}, rail: {rail}}}, "
                   f"during: {{iteration: {step}, progress: {20 + int(stream.random() * 66)}%}}, duration: {duration}}}")
            step += every
        step += every * len(nics)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--faults", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rails", type=int, default=2)
    parser.add_argument("--duration", default="800ms")
    parser.add_argument("--in-turn", choices=KINDS)
    parser.add_argument("--every", type=int, default=7)
    arguments = parser.parse_args()
    if min(arguments.faults, arguments.nodes, arguments.rails, arguments.every) < 1 or (
            not arguments.in_turn and arguments.steps <= arguments.faults):
        parser.error("there is at least one fault, node and rail, and a step for each fault")
    common = {name: getattr(arguments, name) for name in ("seed", "faults", "nodes", "rails", "duration")}
    if arguments.in_turn:
        drawn = in_turn(arguments.in_turn, arguments.every, **common)
    else:
        drawn = draw(steps=arguments.steps, **common)
    print("[" + ",\n ".join(drawn) + "]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
