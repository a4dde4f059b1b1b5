#!/usr/bin/env python3
"""Prints what Apache Otava finds in synthetic series, as crates/linerate-watch/tests/watch/otava.txt has it.

    python3 -m venv target/otava && target/otava/bin/pip install apache-otava==0.8.0
    target/otava/bin/python scripts/change-points.py | diff crates/linerate-watch/tests/watch/otava.txt -

Each line: seed, window, largest probability of chance, smallest change, whether logarithms are looked at, and the indexes.
tests/watch/change_points.rs makes the same series.
"""
import math

from otava.analysis import compute_change_points

ALL = 2**64


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % ALL
        value = (self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9 % ALL
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB % ALL
        return value ^ (value >> 31)

    def below(self, limit):
        return self.bits() * limit >> 64


def series(seed):
    """Steps under noise with dips: whole numbers, so that each language has the same ones."""
    random = Random(seed)
    length = 20 + random.below(180)
    noise = [0, 5, 10, 30, 60][random.below(5)]
    level, values = 9_400_000, []
    for _ in range(length):
        if random.below(40) == 0:
            level = level * (50 + random.below(100)) // 100
        spread = sum(random.bits() >> 48 for _ in range(12)) - 6 * 65535
        value = level * (65536 * 1000 + noise * spread) // (65536 * 1000)
        if random.below(100) == 0:
            value //= 3
        values.append(max(value, 1))
    return values


OPTIONS = [(50, 0.001, 0.0), (50, 0.001, 0.05), (30, 0.01, 0.05), (10, 0.0001, 0.0), (7, 0.2, 0.0)]

for seed in range(200):
    window, chance, least = OPTIONS[seed % 5]
    logarithm = seed % 2 == 1
    values = [float(value) for value in series(seed)]
    if logarithm:
        # Otava's smallest change is a share of the values, which logarithms are not.
        values, least = [math.log(value) for value in values], 0.0
    points, _ = compute_change_points(values, window_len=window, max_pvalue=chance, min_magnitude=least)
    print(seed, window, chance, least, int(logarithm), *(int(point.index) for point in points))
