"""Plots as SVG: lines and ratios. A few hundred bytes of text that need no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 48, 52
COLORS: Final = ("#0b6e99", "#c2571a", "#3f7d3a", "#7a4f9a", "#8a6d00", "#a02c4a")

Line = Sequence[tuple[float, float]]


def lines(title: str, x_name: str, y_name: str, data: Mapping[str, Line], *, by_decades: bool = False) -> str:
    """Return an SVG with lines from the origin, each labeled at its end. With ``by_decades``, the x axis is
    logarithmic, from the smallest x on."""
    if by_decades:
        data = {name: [(math.log10(x), y) for x, y in line] for name, line in data.items()}
    x_least = math.floor(min(x for line in data.values() for x, _ in line)) if by_decades else 0
    x_most = max(x for line in data.values() for x, _ in line)
    x_most = math.ceil(x_most) if by_decades else _round_up(x_most)
    y_most = _round_up(max(y for line in data.values() for _, y in line))

    def at(x: float, y: float) -> tuple[float, float]:
        across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + across * (x - x_least) / (x_most - x_least), HEIGHT - BOTTOM - down * y / y_most

    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="16" fill="#222222">{title}</text>',
    ]
    for tick in range(6):
        y = y_most * tick / 5
        (left, level), (right, _) = at(x_least, y), at(x_most, y)
        parts.append(f'<line x1="{left:.0f}" y1="{level:.0f}" x2="{right:.0f}" y2="{level:.0f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 8:.0f}" y="{level + 4:.0f}" text-anchor="end" fill="#444444">{y:g}</text>')
    ticks = range(x_least, int(x_most) + 1) if by_decades else [x_most * tick / 5 for tick in range(6)]
    for x in ticks:
        below, bottom = at(x, 0)
        told = f"{10.0**x:,.0f}" if by_decades else f"{x:,.0f}"
        parts.append(f'<text x="{below:.0f}" y="{bottom + 20:.0f}" text-anchor="middle" fill="#444444">{told}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle" fill="#222222">{x_name}</text>')
    parts.append(f'<text x="14" y="{TOP - 6}" fill="#222222" font-size="12">{y_name}</text>')
    ends = _apart({name: at(*line[-1])[1] for name, line in data.items()})
    for (name, line), color in zip(data.items(), COLORS):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in (at(*point) for point in line)
        ]
        parts.append(f'<text x="{at(*line[-1])[0] + 10:.0f}" y="{ends[name] + 4:.0f}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def ratios(title: str, x_name: str, data: Mapping[str, Mapping[str, float]]) -> str:
    """Return an SVG with a row for each program and a point for each series, on a logarithmic scale. A line marks the
    ratio 1."""
    series = list(dict.fromkeys(name for row in data.values() for name in row))
    values = [value for row in data.values() for value in row.values()]
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    least, most = min(least, -1), max(most, 0)
    left, top, step, width = 270, 72, 20, 900
    height = top + step * len(data) + 44

    def at(value: float) -> float:
        return left + (width - left - 30) * (math.log10(value) - least) / (most - least)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="13">'
        ),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" fill="#222222">{escape(title)}</text>',
    ]
    x = left
    for name, color in zip(series, COLORS):
        parts.append(f'<circle cx="{x}" cy="46" r="5" fill="{color}"/>')
        parts.append(f'<text x="{x + 10}" y="50" fill="#222222">{escape(name)}</text>')
        x += 40 + 8 * len(name)
    for decade in range(least, most + 1):
        for digit in (1, 2, 5) if decade < most else (1,):
            value = digit * 10.0**decade
            color, broad = ("#666666", 2) if value == 1 else ("#dddddd", 1)
            parts.append(
                f'<line x1="{at(value):.1f}" y1="{top - 10}" x2="{at(value):.1f}" y2="{height - 40}" '
                f'stroke="{color}" stroke-width="{broad}"/>'
            )
            parts.append(
                f'<text x="{at(value):.1f}" y="{height - 24}" text-anchor="middle" fill="#444444">{value:g}</text>'
            )
    for index, (program, row) in enumerate(data.items()):
        y = top + step * index + 4
        parts.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end" fill="#222222">{escape(program)}</text>')
        parts += [
            f'<circle cx="{at(row[name]):.1f}" cy="{y}" r="5" fill="{color}" fill-opacity="0.85">'
            f"<title>{escape(program)}, {escape(name)}: {row[name]:.2f}</title></circle>"
            for name, color in zip(series, COLORS)
            if name in row
        ]
    middle = (left + width - 30) / 2
    parts.append(f'<text x="{middle:.0f}" y="{height - 6}" text-anchor="middle" fill="#222222">{escape(x_name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _round_up(value: float) -> float:
    """Return the next number above that is 1, 2, 2.5, 3, 4, 5, 6, 8 or 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value)


def _apart(places: Mapping[str, float], least: float = 16) -> dict[str, float]:
    """Return the positions, moved apart so that a line of text fits between them."""
    found: dict[str, float] = {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        found[name] = max([place, *(other + least for other in found.values())])
    return found
