"""Puts polls of a chosen form into PTX, for timing. It neither covers every loop nor proves anything: the pass does that."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

INSTRUCTION = re.compile(r"^\s*(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*?);\s*(?://.*)?$")
LABEL = re.compile(r"^\s*(\$?[\w$]+):")
NUMBER = re.compile(r"^-?\d+$")
# Same first words as docs/ABI.md: version, action, launch, unused, flag, timeout, start, ..., record.
GLOBALS = (
    ".visible .global .align 4 .b32 cuinstr_flag_v1;\n"
    ".visible .global .align 8 .u64 cuinstr_control_v1[149] = {0x100000001, 1, generic(cuinstr_flag_v1)};"
)
STOP = """
.func cuinstr_stop() {
 .reg .pred q; .reg .b32 r;
 ld.global.u32 r, [cuinstr_control_v1+4]; setp.eq.s32 q, r, 0; @q trap; exit;
}
"""
POLL = """
.func cuinstr_poll() {
 .reg .pred q; .reg .b32 r, l; .reg .b64 d;
 ld.global.u64 d, [cuinstr_control_v1+16]; ld.relaxed.sys.global.u32 r, [d]; ld.global.u32 l, [cuinstr_control_v1+8];
 setp.ne.s32 q, r, l; @q bra X; ld.global.u32 r, [cuinstr_control_v1+4]; setp.eq.s32 q, r, 0; @q trap; exit;
 X: ret;
}
"""


@dataclass(frozen=True)
class Plan:
    """How polls are put in: the form of a counted loop, iterations between polls, the cold path, the ends of a kernel."""

    form: str = "none"  # none, down, substitute, and, branch
    interval: int = 256
    cold: str = "exit"  # exit, trap, both, call-return, call-end, poll-call
    clock: bool = False  # whether a poll reads the clock too, and compares with the deadline
    entry: str = "none"  # none, ask, number
    exit: str = "none"  # none, all, few


@dataclass
class Instruction:
    line: int
    negated: bool
    guard: str | None
    opcode: str
    operands: list[str]


@dataclass
class Block:
    name: str | None
    line: int
    code: list[Instruction] = field(default_factory=list)


@dataclass
class Counted:
    """A latch test of a counter that moves by one step in each iteration towards a bound that the loop does not write."""

    test: Instruction
    counter: str
    bound: str
    step: str
    compare: str
    type: str
    is_first: bool


def functions(lines: list[str]) -> list[tuple[int, int, bool]]:
    """Line of the opening brace, of the closing one, and whether it is a kernel."""
    found, at = [], 0
    while at < len(lines):
        if not re.match(r"\s*(\.(visible|weak|extern)\s+)?\.(entry|func)\b", lines[at]):
            at += 1
            continue
        is_kernel, start = ".entry" in lines[at], at
        while "{" not in lines[start] and not lines[start].rstrip().endswith(";"):
            start += 1
        if "{" in lines[start]:
            depth, end = 0, start
            while True:
                depth += lines[end].count("{") - lines[end].count("}")
                if depth == 0:
                    break
                end += 1
            found.append((start, end, is_kernel))
            start = end
        at = start + 1
    return found


def blocks_of(lines: list[str], start: int, end: int) -> list[Block]:
    blocks = [Block(None, start + 1)]
    for at in range(start + 1, end):
        text = lines[at].strip()
        label = LABEL.match(text)
        if label:
            if blocks[-1].code or blocks[-1].name:
                blocks.append(Block(label.group(1), at))
            else:
                blocks[-1].name, blocks[-1].line = label.group(1), at
            continue
        found = INSTRUCTION.match(lines[at])
        if not found or text.startswith("."):
            continue
        negated, guard, opcode, operands = found.groups()
        blocks[-1].code.append(Instruction(at, negated == "!", guard, opcode, [part.strip() for part in operands.split(",")]))
        if opcode.split(".")[0] in ("bra", "ret", "exit", "trap", "brx"):
            blocks.append(Block(None, at + 1))
    return blocks


def successors(blocks: list[Block]) -> list[list[int]]:
    number = {block.name: at for at, block in enumerate(blocks) if block.name}
    result = []
    for at, block in enumerate(blocks):
        last = block.code[-1] if block.code else None
        to, falls = [], True
        if last and last.opcode.startswith("bra"):
            to, falls = [number[last.operands[0]]], last.guard is not None
        elif last and last.opcode in ("ret", "exit", "trap"):
            falls = last.guard is not None
        if falls and at + 1 < len(blocks):
            to.append(at + 1)
        result.append(to)
    return result


def natural_loops(after: list[list[int]]) -> dict[int, tuple[list[int], set[int]]]:
    """Heads with their latches and members."""
    count = len(after)
    before: list[list[int]] = [[] for _ in range(count)]
    for at, to in enumerate(after):
        for target in to:
            before[target].append(at)
    dominators = [set(range(count)) for _ in range(count)]
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for at in range(1, count):
            inputs = [dominators[other] for other in before[at]]
            new = (set.intersection(*inputs) if inputs else set()) | {at}
            if new != dominators[at]:
                dominators[at], changed = new, True
    loops: dict[int, tuple[list[int], set[int]]] = {}
    for at, to in enumerate(after):
        for head in to:
            if head in dominators[at]:
                latches, members = loops.setdefault(head, ([], {head}))
                latches.append(at)
                work = [at]
                while work:
                    other = work.pop()
                    if other not in members:
                        members.add(other)
                        work.extend(before[other])
    return loops


def counted(blocks: list[Block], members: set[int], latch: int) -> Counted | None:
    branch = blocks[latch].code[-1]
    tests = [i for i in blocks[latch].code if i.opcode.startswith("setp") and i.operands[0] == branch.guard and len(i.operands) == 3]
    if not tests:
        return None
    test = tests[-1]
    compare, kind = test.opcode.split(".")[1:3]
    writers = lambda name: [
        i
        for member in members
        for i in blocks[member].code
        if i.operands[0].strip("{}") == name and i.opcode.split(".")[0] not in ("st", "setp", "bra", "red")
    ]
    invariant = lambda name: bool(NUMBER.match(name)) or (name.startswith("%") and not writers(name))
    first, second = test.operands[1:]
    for counter, bound in ((first, second), (second, first)):
        changes = writers(counter) if counter.startswith("%") else []
        if not invariant(bound) or len(changes) != 1 or changes[0].opcode.split(".")[0] != "add" or changes[0].guard:
            continue
        others = changes[0].operands[1:]
        step = others[1] if others[0] == counter else others[0]
        base = others[0] if step is others[1] else others[1]
        if base != counter:
            moves = writers(base)
            if not (len(moves) == 1 and moves[0].opcode.startswith("mov") and moves[0].operands[1] == counter):
                continue
        if not invariant(step) or kind not in ("s32", "u32", "s64", "u64") or branch.negated:
            continue
        backwards = NUMBER.match(step) and int(step) < 0
        if compare not in (("ne", "gt", "ge") if backwards else ("ne", "lt", "le")) or counter != first:
            continue
        if not NUMBER.match(step) and compare != "lt":
            continue
        return Counted(test, counter, bound, step, compare, kind, counter == first)
    return None


def cold(plan: Plan, head: str, name: str) -> list[str]:
    """What stands behind the hot loop: the poll, and the way back to `head`."""
    if plan.cold == "poll-call":
        return ["\t{ call.uni cuinstr_poll; }", f"\tbra {head};"]
    text = [
        "\tld.global.u64 %cud, [cuinstr_control_v1+16];",
        "\tld.relaxed.sys.global.u32 %cur, [%cud];",
        "\tld.global.u32 %cul, [cuinstr_control_v1+8];",
        "\tsetp.eq.s32 %cuq, %cur, %cul;",
    ]
    if plan.clock:
        text += [
            "\tmov.u64 %cut, %globaltimer;",
            "\tld.global.u64 %cus, [cuinstr_control_v1+32];",
            "\tsub.u64 %cut, %cut, %cus;",
            "\tld.global.u64 %cus, [cuinstr_control_v1+24];",
            "\tadd.s64 %cus, %cus, -1;",
            "\tsetp.gt.or.u64 %cuq, %cut, %cus, %cuq;",
        ]
    if plan.cold == "exit":
        text += ["\t@%cuq exit;"]
    elif plan.cold == "trap":
        text += ["\t@%cuq trap;"]
    elif plan.cold == "both":
        text += ["\tld.global.u32 %cur, [cuinstr_control_v1+4];", "\tsetp.eq.and.s32 %cuz, %cur, 0, %cuq;", "\t@%cuz trap;", "\t@%cuq exit;"]
    elif plan.cold == "call-return":
        text += [f"\t@!%cuq bra {head};", "\t{ call.uni cuinstr_stop; }"]
    elif plan.cold == "call-end":
        text += [f"\t@!%cuq bra {head};", "\t{ call.uni cuinstr_stop; }", "\texit;"]
        return text
    else:
        raise ValueError(f"{name}: unknown cold path {plan.cold}")
    return [*text, f"\tbra {head};"]


def trips(loop: Counted, limit: str, interval: int, is_down: bool) -> list[str]:
    """Sets `limit`: to the trips of the next strip, or to where the counter is at its end."""
    width = loop.type[1:]
    if not NUMBER.match(loop.step):
        return [
            f"\tsub.s{width} {limit}, {loop.bound}, {loop.counter};",
            f"\tmul.lo.s{width} {limit}x, {loop.step}, {interval};",
            f"\tmin.u{width} {limit}, {limit}, {limit}x;",
            f"\tadd.s{width} {limit}, {loop.counter}, {limit};",
        ]
    step = int(loop.step)
    size = abs(step)
    ends = (loop.bound, loop.counter) if step > 0 else (loop.counter, loop.bound)
    if NUMBER.match(ends[0]):
        text = [f"\tmov.b{width} {limit}, {ends[0]};", f"\tsub.s{width} {limit}, {limit}, {ends[1]};"]
    else:
        text = [f"\tsub.s{width} {limit}, {ends[0]}, {ends[1]};"]
    if not is_down:
        return [*text, f"\tmin.u{width} {limit}, {limit}, {size * interval};", f"\t{'add' if step > 0 else 'sub'}.s{width} {limit}, {loop.counter}, {limit};"]
    more = {"ne": 0, "lt": size - 1, "gt": size - 1}.get(loop.compare, size)
    if more:
        text.append(f"\tadd.s{width} {limit}, {limit}, {more};")
    if size > 1:
        text.append(f"\tshr.u{width} {limit}, {limit}, {size.bit_length() - 1};" if size & (size - 1) == 0 else f"\tdiv.u{width} {limit}, {limit}, {size};")
    return [*text, f"\tmin.u{width} {limit}, {limit}, {interval};"]


class Editor:
    def __init__(self, text: str, plan: Plan) -> None:
        self.lines, self.plan = text.split("\n"), plan
        self.before: dict[int, list[str]] = {}
        self.after: dict[int, list[str]] = {}
        self.instead: dict[int, list[str]] = {}
        self.counts = {"loops": 0, "counted": 0, "counter": 0, "left": 0}
        self.next = 0

    def run(self) -> str:
        for start, end, is_kernel in functions(self.lines):
            self.function(start, end, is_kernel)
        first = next(at for at, line in enumerate(self.lines) if re.match(r"\s*\.(visible|global|extern|func|entry|const|shared|weak)", line))
        helpers = GLOBALS + (STOP if self.plan.cold.startswith("call") else "") + (POLL if self.plan.cold == "poll-call" else "")
        self.before[first] = [helpers, *self.before.get(first, [])]
        out: list[str] = []
        for at, line in enumerate(self.lines):
            out += [*self.before.get(at, []), *self.instead.get(at, [line]), *self.after.get(at, [])]
        return "\n".join(out)

    def function(self, start: int, end: int, is_kernel: bool) -> None:
        blocks = blocks_of(self.lines, start, end)
        after = successors(blocks)
        registers = ["\t.reg .b32 %cur, %cul; .reg .b64 %cud, %cut, %cus; .reg .pred %cuq, %cuz, %cuo;"]
        code: list[str] = []
        if is_kernel:
            code += self.entry(start)
            self.exits(blocks, end)
        if self.plan.form != "none":
            for head, (latches, members) in natural_loops(after).items():
                self.counts["loops"] += 1
                self.loop(blocks, after, head, latches, members, registers, code)
        self.after[start] = registers + code

    def loop(self, blocks: list[Block], after: list[list[int]], head: int, latches: list[int], members: set[int], registers: list[str], code: list[str]) -> None:
        name = blocks[head].name
        last = blocks[latches[0]].code[-1] if blocks[latches[0]].code else None
        falls_in = head - 1 in members and head in after[head - 1] and not (blocks[head - 1].code and blocks[head - 1].code[-1].operands[0] == name)
        if len(latches) != 1 or last is None or not last.opcode.startswith("bra") or last.operands[0] != name or falls_in:
            self.counts["left"] += 1
            return
        self.next += 1
        outer, limit = f"$CUO_{self.next}", f"%cuc{self.next}_"
        found = counted(blocks, members, latches[0]) if last.guard else None
        form = self.plan.form if found else ("branch" if self.plan.form == "branch" else "and")
        if found and form == "down" and not NUMBER.match(found.step):
            form = "substitute"
        self.counts["counted" if found else "counter"] += 1
        width = found.type[1:] if found and form in ("down", "substitute") else "32"
        registers.append(f"\t.reg .b{width} {limit}, {limit}x;")
        poll = cold(self.plan, outer, outer)
        taken = f"{'!' if last.negated else ''}{last.guard}"
        past = f"$CUX_{self.next}"
        if form in ("down", "substitute") and found:
            self.enter(blocks, members, name or "", outer, [f"{outer}:", *trips(found, limit, self.plan.interval, form == "down")], head)
            test = found.test
            if form == "down":
                self.instead[test.line] = [f"\tadd.s{width} {limit}, {limit}, -1;", f"\tsetp.ne.s{width} {test.operands[0]}, {limit}, 0;"]
            else:
                self.instead[test.line] = [f"\t{test.opcode} {test.operands[0]}, {test.operands[1]}, {limit};"]
            again = f"\t{test.opcode} %cuo, {test.operands[1]}, {test.operands[2]};"
            self.after[last.line] = [again, f"\t@!%cuo bra {past};", *poll, f"{past}:"]
        elif form == "and":
            self.enter(blocks, members, name or "", outer, [f"{outer}:", f"\tmov.u32 {limit}, {self.plan.interval};"], head)
            count = f"\tadd.s32 {limit}, {limit}, -1;"
            if last.guard:
                self.instead[last.line] = [count, f"\tsetp.ne.and.s32 %cuo, {limit}, 0, {taken};", f"\t@%cuo bra {name};"]
                inverse = f"{'' if last.negated else '!'}{last.guard}"
                self.after[last.line] = [f"\t@{inverse} bra {past};", *poll, f"{past}:"]
            else:
                self.instead[last.line] = [count, f"\tsetp.ne.s32 %cuo, {limit}, 0;", f"\t@%cuo bra {name};", *poll]
        else:
            self.enter(blocks, members, name or "", outer, [f"{outer}:", f"\tmov.u32 {limit}, {self.plan.interval};"], head)
            skip = [] if last.guard is None else [f"\t@{'' if last.negated else '!'}{last.guard} bra {past};"]
            self.instead[last.line] = [*skip, f"\tadd.s32 {limit}, {limit}, -1;", f"\tsetp.ge.s32 %cuo, {limit}, 0;", f"\t@%cuo bra {name};", *poll, f"{past}:"]

    def enter(self, blocks: list[Block], members: set[int], name: str, outer: str, text: list[str], head: int) -> None:
        """Puts text on all ways into the loop."""
        self.before.setdefault(blocks[head].line, []).extend(text)
        for at, block in enumerate(blocks):
            if at not in members and block.code and block.code[-1].opcode.startswith("bra") and block.code[-1].operands[0] == name:
                line = block.code[-1].line
                self.instead[line] = [self.lines[line].replace(name + ";", outer + ";")]

    def entry(self, start: int) -> list[str]:
        if self.plan.entry == "none":
            return []
        read = ["\tld.global.u32 %cul, [cuinstr_control_v1+8];", "\tld.global.u64 %cud, [cuinstr_control_v1+16];"]
        if self.plan.entry == "number":
            return [*read, "\tsetp.eq.s32 %cuq, %cul, 0;", "\t@%cuq trap;"]
        name = f"$CUE_{start}"
        return [
            *read,
            "\tsetp.eq.s32 %cuq, %cul, 1;",
            f"\t@%cuq bra {name};",
            "\tld.relaxed.gpu.global.u32 %cur, [%cud];",
            "\tsetp.eq.s32 %cuq, %cur, %cul;",
            "\t@%cuq exit;",
            f"{name}:",
        ]

    def exits(self, blocks: list[Block], end: int) -> None:
        if self.plan.exit == "none":
            return
        for number, block in enumerate(blocks):
            last = block.code[-1] if block.code else None
            if last is None or last.opcode not in ("ret", "exit"):
                continue
            past = f"$CUL_{end}_{number}"
            text = []
            if last.guard:
                # The others go on behind it.
                text.append(f"\t@{'' if last.negated else '!'}{last.guard} bra {past}_on;")
            if self.plan.exit == "few":
                text += [
                    "\tmov.u32 %cur, %ctaid.x;",
                    "\tand.b32 %cur, %cur, 7;",
                    "\tmov.u32 %cul, %tid.x;",
                    "\tshr.u32 %cul, %cul, 5;",
                    "\tor.b32 %cur, %cur, %cul;",
                    "\tsetp.ne.s32 %cuq, %cur, 0;",
                    f"\t@%cuq bra {past};",
                ]
            text += [
                "\tld.global.u32 %cul, [cuinstr_control_v1+8];",
                "\tsetp.eq.s32 %cuq, %cul, 1;",
                f"\t@%cuq bra {past};",
                "\tld.global.u64 %cud, [cuinstr_control_v1+16];",
                "\tld.relaxed.gpu.global.u32 %cur, [%cud];",
                "\tsetp.ne.s32 %cuq, %cur, %cul;",
                f"\t@%cuq bra {past};",
                "\tst.volatile.global.u32 [cuinstr_control_v1+92], %cul;",
                f"{past}:",
                "\tret;",
            ]
            if last.guard:
                text.append(f"{past}_on:")
            self.instead[last.line] = text


def transform(text: str, plan: Plan) -> tuple[str, dict[str, int]]:
    editor = Editor(text, plan)
    out = editor.run()
    return out, editor.counts
