"""The faults of scenarios/gpu/ddp.yaml, at random steps, from a seed.

    draw_faults.py --seed N [--faults 16] [--steps 500] [--nodes 4] [--rails 2] [--duration 800ms]

One fault in the first half of each of as many equal spans of the steps, the first span left out as warm-up,
so that no two are under way at a time. Of kind, NIC, step and progress in it all are equally likely. What
it prints is a list for `faults` of a scenario, also on the command line:

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


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--faults", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rails", type=int, default=2)
    parser.add_argument("--duration", default="800ms")
    arguments = parser.parse_args()
    if min(arguments.faults, arguments.nodes, arguments.rails) < 1 or arguments.steps <= arguments.faults:
        parser.error("there is at least one fault, node and rail, and a step for each fault")
    print("[" + ",\n ".join(draw(**vars(arguments))) + "]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
