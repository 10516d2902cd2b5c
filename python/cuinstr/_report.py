"""An evaluation's verdicts as one HTML file that needs no other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1c2330; background: #fff }
h1 { font-size: 1.5rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem } p { margin: .3rem 0 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #e3e7ee; vertical-align: top }
th { font-weight: 600; color: #5a6578 } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } code { font-size: .9em; overflow-wrap: anywhere }
.bar { display: flex; height: 1.6rem; border-radius: 4px; overflow: hidden; margin: .8rem 0 .4rem } .bar span { min-width: 2px }
.key span { display: inline-block; margin-right: 1.2rem } .key i, td i { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin-right: .4rem }
details { margin-top: 2rem } summary { cursor: pointer; font-weight: 600 } .quiet { color: #5a6578 } svg text { font: 12px system-ui, sans-serif; fill: #1c2330 }
@media (prefers-color-scheme: dark) {
  body { color: #dde3ee; background: #12161e } th, .quiet { color: #93a0b5 } th, td { border-color: #2a3242 } svg text { fill: #dde3ee } }
"""
_COLOURS = {
    "pass": "#2e9e5b",
    "wrong result": "#d1495b",
    "timeout": "#e0a030",
    "fault": "#7d4bb3",
    "compile error": "#8a94a6",
    "refused": "#4a5568",
    "compiles": "#3b82c4",
}
# Rows of a list; all are in the table at the end.
_MOST = 20


def _mark(verdict: str) -> str:
    return f'<i style="background:{_COLOURS.get(verdict, "#888")}"></i>{escape(verdict)}'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    kind = ['class="n"' if index in numbers else "" for index in range(len(heads))]
    head = "".join(f"<th {kind[index]}>{escape(text)}</th>" for index, text in enumerate(heads))
    body = "".join("<tr>" + "".join(f"<td {kind[index]}>{cell}</td>" for index, cell in enumerate(row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shares(counts: Counter[str]) -> str:
    total = sum(counts.values()) or 1
    known = [name for name in _COLOURS if counts[name]]
    bar = "".join(f'<span style="flex:{counts[name]};background:{_COLOURS[name]}" title="{name}: {counts[name]}"></span>' for name in known)
    key = "".join(f"<span>{_mark(name)} {counts[name]} ({100 * counts[name] / total:.0f} %)</span>" for name in known)
    return f'<div class="bar">{bar}</div><p class="key">{key}</p>'


def _place(line: dict[str, Any]) -> str:
    place = line.get("place")
    if not place:
        return ""
    text = f" <code>{escape(place['text'])}</code>" if place.get("text") else ""
    return f"line {place['line']}{text}"


def _speed_up(line: dict[str, Any]) -> float | None:
    """The geometric mean over all cases; modules have one figure."""
    if "speed_up" in line:
        return float(line["speed_up"])
    times = line.get("times", [])
    known = [case["speed_up"] for case in times if case.get("speed_up")] if isinstance(times, list) else []
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def _medians(line: dict[str, Any]) -> str:
    times = line.get("times", [])
    cases = times if isinstance(times, list) else [times]
    shown = []
    for case in cases:
        low, high = case["quartiles_ms"]
        shown.append(f"{case['median_ms']:.4g} ms ({low:.4g} to {high:.4g})")
    return ", ".join(shown)


def _speeds(lines: Sequence[dict[str, Any]]) -> str:
    """A dot for each candidate that was timed, on a logarithmic axis."""
    known = sorted(((speed, line["candidate"]) for line in lines if (speed := _speed_up(line))), reverse=True)
    if not known:
        return ""
    width, step, left = 900, 18, 260
    shown = known[: 2 * _MOST]
    low, high = min(0.5, known[-1][0]), max(2.0, known[0][0])
    span = math.log(high / low)

    def at(speed: float) -> float:
        return left + (width - left - 60) * math.log(speed / low) / span

    height = step * len(shown) + 40
    ticks = [tick for power in range(-4, 6) for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= tick <= high]
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="speed-ups over the reference">']
    for tick in ticks:
        colour = "#5a6578" if tick == 1 else "#c9d1de"
        parts.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="8" y2="{height - 26}" stroke="{colour}"/>')
        parts.append(f'<text x="{at(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for index, (speed, name) in enumerate(shown):
        y = 20 + step * index
        short = name if len(name) <= 38 else "…" + name[-37:]
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(short)}</text>')
        parts.append(f'<circle cx="{at(speed):.1f}" cy="{y}" r="5" fill="{_COLOURS["pass"]}"><title>{escape(name)}: {speed:.3g}</title></circle>')
        parts.append(f'<text x="{at(speed) + 9:.1f}" y="{y + 4}">{speed:.3g}</text>')
    more = f'<p class="quiet">The {len(shown)} fastest of {len(known)}.</p>' if len(known) > len(shown) else ""
    return f'<h2>Speed-up over the reference</h2>{"".join(parts)}</svg>{more}<p class="quiet">Median of the reference over median of the candidate.</p>'


def _scores(summary: dict[str, Any]) -> str:
    parts = []
    for title, name in [("Mutation score by operator", "score_by_operator"), ("Mutation score by function", "score_by_function")]:
        scores = summary.get(name) or {}
        rows = []
        for key, score in sorted(scores.items(), key=lambda item: (item[1]["noticed"] / max(1, item[1]["of"]), item[0])):
            share = 100 * score["noticed"] / max(1, score["of"])
            rows.append((f"<code>{escape(key)}</code>", f"{share:.0f} %", str(score["noticed"]), str(score["of"])))
        if rows:
            parts.append(f"<h2>{title}</h2>" + _table(["", "score", "noticed", "of"], rows, (1, 2, 3)))
    return "".join(parts)


def _survivors(lines: Sequence[dict[str, Any]]) -> str:
    kept = [line for line in lines if line["verdict"] == "pass" and line.get("mutant")]
    if not kept:
        return ""
    rows = []
    for line in kept[:_MOST]:
        mutant = line["mutant"]
        change = f"<code>{escape(mutant['before'])}</code> → <code>{escape(mutant['after']) or '(nothing)'}</code>"
        rows.append((escape(line["candidate"]), f"{mutant['line']}:{mutant['column']}", escape(mutant["operator"]), change))
    note = f'<p class="quiet">{_MOST} of {len(kept)}.</p>' if len(kept) > _MOST else ""
    return "<h2>Mutants that no test case noticed</h2>" + _table(["mutant", "place", "operator", "change"], rows) + note


def html(title: str, summary: dict[str, Any], judgements: Iterable[dict[str, Any]]) -> str:
    """The file's text."""
    lines = [line for line in judgements if line.get("round", 1) == 1]
    counts = Counter(line["verdict"] for line in lines)
    about = [str(summary["device"])] if summary.get("device") else []
    if summary.get("took_s"):
        about.append(f"{summary['judged'] - summary.get('known', 0)} judged in {summary['took_s']:.1f} s")
    if summary.get("score"):
        score = summary["score"]
        about.append(f"mutation score {100 * score['noticed'] / max(1, score['of']):.0f} % ({score['noticed']} of {score['of']})")
    if summary.get("wanted", 0) > summary.get("judged", 0):
        about.append(f"{summary['wanted'] - summary['judged']} are left")
    timeouts = [line for line in lines if line["verdict"] == "timeout"]
    slowest = sorted(lines, key=lambda line: -line.get("elapsed_ms", 0.0))[:10]
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1><p class='quiet'>{escape('; '.join(about))}</p>",
        _shares(counts),
        _speeds(lines),
        _scores(summary),
        _survivors(lines),
    ]
    if timeouts:
        rows = [(escape(line["candidate"]), _place(line) or escape(line.get("message", "")), escape(line.get("by", ""))) for line in timeouts[:_MOST]]
        note = f'<p class="quiet">{_MOST} of {len(timeouts)}.</p>' if len(timeouts) > _MOST else ""
        parts.append("<h2>Timeouts</h2>" + _table(["candidate", "loop", "stopped by"], rows) + note)
    rows = [(escape(line["candidate"]), _mark(line["verdict"]), f"{line.get('elapsed_ms', 0.0):.1f}") for line in slowest]
    parts.append("<h2>Slowest to judge</h2>" + _table(["candidate", "verdict", "ms"], rows, (2,)))
    rows = [
        (escape(line["candidate"]), _mark(line["verdict"]), " ".join(filter(None, [escape(line.get("message") or ""), _place(line), _medians(line)])))
        for line in lines
    ]
    parts.append(f"<details><summary>All {len(lines)} candidates</summary>{_table(['candidate', 'verdict', 'reason'], rows)}</details></html>\n")
    return "\n".join(part for part in parts if part)
