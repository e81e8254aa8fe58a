"""Faults of scenarios/gpu, from a seed: those of ddp.yaml, of protocols.yaml, and of pauses over more rails.

    draw_faults.py --seed N [--faults 16] [--steps 500] [--nodes 4] [--rails 2] [--duration 800ms]
    draw_faults.py --seed N --in-turn KIND[,KIND...] [--every 7] [--faults ...] [--nodes ...] [--rails ...]

One fault in the first half of each of as many equal spans of the steps, the first span left out as warm-up,
so that no two are under way at a time. Of kind, NIC, step and progress in it all are equally likely. A reset
is of one connection.

With --in-turn one fault comes every so many steps, at a random progress of its step, the kinds in turn; a reset is
of all connections of the NIC. A link of a ring fails with the NIC of either of its ends, and is to stay whole for as
long as can be in between: so the NICs of every other node are struck in turn, half of the faults, and the others
after a gap; the number of nodes is even.

What it prints is a list for `faults` of a scenario, also on the command line:

    faultline run scenarios/gpu/ddp.yaml --set "faults=$(python3 ci/gpu/draw_faults.py --seed 8)"
"""
import argparse
import itertools
import random
import sys

KINDS = ("port_down", "blackhole", "connection_reset")
# Of faults in turn: parameters that take all of the NIC, and how long it lasts.
WHOLE_NIC = {"port_down": ("", "500ms"), "blackhole": ("", "600ms"), "connection_reset": ("connections: all, ", "10ms")}


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


def in_turn(kinds, every, seed, faults, nodes, rails):
    stream = random.Random(seed)
    kind_of_next = itertools.cycle(kinds)
    step = every
    for parity in (0, 1):
        nics = [(node, rail) for node in range(parity, nodes, 2) for rail in range(rails)]
        for number in range(faults // 2 if parity else faults - faults // 2):
            kind = next(kind_of_next)
            parameters, duration = WHOLE_NIC[kind]
            node, rail = nics[number % len(nics)]
            yield (f"{{kind: {kind}, {parameters}target: {{node: {node}, rail: {rail}}}, "
                   f"during: {{iteration: {step}, progress: {20 + int(stream.random() * 66)}%}}, duration: {duration}}}")
            step += every
        step += every * len(nics)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--faults", type=int, default=16)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rails", type=int, default=2)
    parser.add_argument("--duration")
    parser.add_argument("--in-turn", type=lambda text: text.split(","))
    parser.add_argument("--every", type=int)
    arguments = parser.parse_args()
    if min(arguments.faults, arguments.nodes, arguments.rails) < 1:
        parser.error("there is at least one fault, node and rail")
    common = {name: getattr(arguments, name) for name in ("seed", "faults", "nodes", "rails")}
    if arguments.in_turn:
        every = 7 if arguments.every is None else arguments.every
        if not set(arguments.in_turn) <= set(KINDS):
            parser.error(f"kinds are {', '.join(KINDS)}")
        if arguments.nodes % 2 or every < 1 or arguments.steps or arguments.duration:
            parser.error("--in-turn is for an even number of nodes and a step or more from fault to fault; "
                         "--steps and --duration are not for it")
        drawn = in_turn(arguments.in_turn, every, **common)
    else:
        steps = 500 if arguments.steps is None else arguments.steps
        if steps <= arguments.faults or arguments.every is not None:
            parser.error("there is a step for each fault; --every is for --in-turn")
        drawn = draw(steps=steps, duration=arguments.duration or "800ms", **common)
    print("[" + ",\n ".join(drawn) + "]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
