"""Spreads an evaluation over the machines of a Ray cluster.

The plan, with the journal, stays in the process that started the evaluation: it alone decides what is judged and writes verdicts. Compilations are tasks
that take a processor each; benches are actors that hold a GPU each, or a share of one. Whatever goes down, an evaluation loses at most the work on the
candidates that were there, and does that again.
"""

from __future__ import annotations

import json
import logging
import pathlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import _native
from ._native import Failure, Summary
from ._site import Order, _Bench, _compile, _probe, _wheel

# Compiled candidates that wait for a bench, at most.
_AHEAD = 256
# Candidates that a bench is given ahead of its answers, so that it never waits for the next.
_DEPTH = 2
# How often a candidate may cost a bench or a compiler before that is its verdict.
_DEATHS = 3
# Benches of a machine that go one after the other before no other is started there.
_FAILURES = 8
# Seconds between two looks at the cluster.
_LOOK = 1.0
# Seconds that an evaluation waits for a GPU to come when all have gone.
_PATIENCE = 60.0
# Seconds that a bench may take for what is not its kernels.
_ORDINARY = 180.0


@dataclass(frozen=True)
class Ray:
    """A Ray cluster as the engine of an evaluation.

    address: of the cluster, as `ray.init` takes it; None starts one of this machine alone, or uses the one that this process is connected to.
    per_gpu: benches on each GPU.
    device: a part of the name of the GPUs to use, if the cluster has several kinds.
    spares: worker processes in reserve for each bench.
    """

    address: str | None = None
    per_gpu: int = 1
    device: str | None = None
    spares: int = 2


class Item(NamedTuple):
    """A candidate to be judged, by its number, for the so-manieth time."""

    candidate: int
    round: int


@dataclass
class _Node:
    """A machine of the cluster."""

    id: str
    name: str
    processors: int
    gpus: int
    facts: dict[str, str] | None = None
    refused: str | None = None
    compiling: int = 0
    alive: bool = True
    # Benches there that went, since one there judged something.
    failures: int = 0


@dataclass
class _Stand:
    """A bench and what it was given."""

    actor: Any
    node: _Node
    gpu: str = "?"
    state: str = "opens"
    ref: Any = None
    since: float = 0.0
    calls: deque[tuple[Item, Any]] = field(default_factory=deque)
    losses: int = 0

    @property
    def label(self) -> str:
        return f"GPU {self.gpu} of {self.node.name}"


class Engine:
    """One evaluation on a cluster."""

    def __init__(self, ray: Any, asked: Ray, plan: _native.Plan, order: Order, tell: Callable[[str, str], object]) -> None:
        self._ray = ray
        self._asked = asked
        self._plan = plan
        self._order = order
        self._tell = tell
        self._is_compile_only = order.arch is not None
        self._files: Any = None
        self._nodes: dict[str, _Node] = {}
        self._stands: list[_Stand] = []
        self._probes: dict[Any, _Node] = {}
        self._compiles: dict[Any, tuple[int, Any, _Node]] = {}
        self._reference: Any = None
        self._image: Any = None
        self._compiler = plan.condition("compiler") or ""
        self._device = plan.condition("device")
        self._driver = plan.condition("driver")
        self._limits = None if self._is_compile_only else plan.limits
        self._patience = _ORDINARY
        self._is_begun = False
        # Runs that are still to come of each candidate, and those of them that wait for their image.
        self._rounds: Counter[int] = Counter()
        self._waiting: dict[int, list[Item]] = {}
        self._left = 0
        self._to_compile: deque[int] = deque()
        # Candidates that are compiled, and their images.
        self._ready: deque[Item] = deque()
        self._images: dict[int, Any] = {}
        self._deaths: Counter[int] = Counter()
        self._excluded: list[str] = []
        self._looked = 0.0
        self._idle_since: float | None = None
        self._since = self._begun = time.monotonic()
        self.losses = 0
        self.prepared = 0.0
        self.took = 0.0

    # The cluster.

    def _remote(self, function: Any, node: _Node, **options: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        return self._ray.remote(function).options(scheduling_strategy=strategy, **options)

    def _warn(self, text: str) -> None:
        self._tell("warned", json.dumps({"what": text}))

    def _look(self) -> None:
        """Takes in who has come and who has gone."""
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        for told in self._ray.nodes():
            known = self._nodes.get(told["NodeID"])
            if not told["Alive"]:
                if known is not None and known.alive:
                    known.alive = False
                continue
            if known is None:
                resources = told["Resources"]
                gpus = 0 if self._is_compile_only else int(resources.get("GPU", 0))
                name = f"{told['NodeManagerHostname']} ({told['NodeID'][:8]})"
                node = _Node(told["NodeID"], name, int(resources.get("CPU", 0)), gpus)
                self._nodes[node.id] = node
                if node.processors or node.gpus:
                    self._probes[self._remote(_probe, node, num_cpus=0, max_retries=0).remote()] = node

    def _refuse(self, node: _Node, why: str) -> None:
        node.refused = why
        self._warn(f"{node.name} is not used: {why}")

    def _probed(self, node: _Node, ref: Any) -> None:
        try:
            facts: dict[str, str] = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            if not _is_death(error):
                self._refuse(node, f"cuinstr can't be used there: {_first_line(error)}")
            return
        if facts["wheel"] != _wheel():
            return self._refuse(node, f"it has {facts['wheel']}, and this machine {_wheel()}: install the same wheel")
        # The first GPU's driver counts, or the journal's.
        if node.gpus and not self._is_compile_only:
            self._driver = self._driver or facts["driver"]
            if facts["driver"] != self._driver:
                return self._refuse(node, f"its driver is {facts['driver']}, and verdicts are of {self._driver}")
        node.facts = facts
        if facts["refused"]:
            self._warn(f"compilers of {node.name} are not shut in: {facts['refused']}")
        for _ in range(node.gpus * self._asked.per_gpu):
            self._open(node)

    def _open(self, node: _Node) -> None:
        actor = self._remote(_Bench, node, num_gpus=1 / self._asked.per_gpu, num_cpus=0, max_restarts=0).remote()
        stand = _Stand(actor, node, since=time.monotonic())
        stand.ref = actor.open.remote(self._files, self._order)
        self._stands.append(stand)

    # The reference.

    def _compiler_node(self) -> _Node | None:
        free = [node for node in self._nodes.values() if node.alive and node.facts is not None and node.compiling < node.processors + 1]
        return min(free, key=lambda node: node.compiling / max(node.processors, 1), default=None)

    def _submit(self, candidate: int, name: str, source: bytes) -> bool:
        node = self._compiler_node()
        if node is None:
            return False
        node.compiling += 1
        remote = self._remote(_compile, node, num_cpus=1, num_returns=2, max_retries=0)
        told, image = remote.remote(self._files, self._order, name, source)
        self._compiles[told] = (candidate, image, node)
        return True

    def _compiled_reference(self, finding: str | None, image: Any) -> None:
        if finding is not None:
            told = json.loads(finding)
            line = f" (line {told['place']['line']})" if told.get("place") else ""
            raise Failure(f"the reference does not compile{line}: {told['message']}")
        # It lives here, so that no machine takes it along.
        self._image = self._ray.put(self._ray.get(image))

    def _begin(self) -> None:
        arch = self._order.arch
        assert arch is not None
        device = "" if self._is_compile_only else self._device or ""
        left, known = self._plan.begin(self._compiler, arch, device, self._driver or "", self._limits or "[]")
        self._is_begun = True
        self.prepared = time.monotonic() - self._since
        self._begun = time.monotonic()
        limits = json.loads(self._limits or "[]")
        self._patience = _ORDINARY + 3 * sum(limit["timeout_s"] + 60.0 for limit in limits)
        for candidate, number in left:
            if not self._rounds[candidate]:
                self._to_compile.append(candidate)
            self._rounds[candidate] += 1
            self._waiting.setdefault(candidate, []).append(Item(candidate, number))
        self._left = len(left)
        self._tell("begun", json.dumps({"limits": limits, "left": self._left, "known": known}))

    # Candidates.

    def _record(self, item: Item, finding: str, elapsed: float, stand: _Stand | None) -> None:
        device = int(stand.gpu) if stand is not None and stand.gpu.isdecimal() else None
        node = stand.node.facts["host"] if stand is not None and stand.node.facts is not None else None
        judgement = self._plan.record(item.candidate, item.round, finding, elapsed, device, node)
        if judgement is None:
            return
        self._left -= 1
        self._rounds[item.candidate] -= 1
        if not self._rounds[item.candidate]:
            self._images.pop(item.candidate, None)
        self._tell("judged", judgement)

    def _feed(self) -> None:
        """Gives compilers and benches what they can take."""
        if self._image is None:
            if self._order.arch is not None and not self._compiles:
                self._submit(-1, *self._plan.reference)
            return
        if not self._is_begun:
            return
        while self._to_compile and len(self._compiles) + len(self._images) < _AHEAD:
            if not self._submit(self._to_compile[0], *self._plan.candidate(self._to_compile[0])):
                break
            self._to_compile.popleft()
        for depth in range(_DEPTH):
            for stand in self._stands:
                if stand.state == "judges" and len(stand.calls) == depth and self._ready:
                    item = self._ready.popleft()
                    if not stand.calls:
                        stand.since = time.monotonic()
                    name, source = self._plan.candidate(item.candidate)
                    ref = stand.actor.judge.remote(name, source, self._images[item.candidate], self._limits)
                    stand.calls.append((item, ref))

    def _compiled(self, ref: Any) -> None:
        candidate, image, node = self._compiles.pop(ref)
        node.compiling -= 1
        finding: str | None
        try:
            finding, compiler = self._ray.get(ref)
            if finding is None:
                self._compiler = self._compiler or compiler
                if compiler != self._compiler:
                    self._refuse(node, f"it compiles with {compiler}, and verdicts are of {self._compiler}")
                    node.facts = None
                    if candidate >= 0:
                        self._to_compile.appendleft(candidate)
                    return
            if candidate < 0:
                return self._compiled_reference(finding, image)
        except self._ray.exceptions.RayError as error:
            if not _is_death(error):
                raise Failure(f"nothing can be compiled on {node.name}: {_first_line(error)}") from error
            if candidate < 0:
                return
            if self._costs(candidate, error, node):
                finding = _native.finding("compile error", f"its compiler was lost {_DEATHS} times")
            else:
                self._to_compile.appendleft(candidate)
                return
        waiting = self._waiting[candidate]
        if finding is None and self._is_compile_only:
            finding = _native.finding("compiles", None)
        if finding is not None:
            for item in waiting:
                self._record(item, finding, 0.0, None)
            waiting.clear()
            return
        self._images[candidate] = image
        self._ready.extend(waiting)

    def _costs(self, candidate: int, error: Any, node: _Node) -> bool:
        """Whether a candidate has cost too much. A machine that goes down is no candidate's doing."""
        import ray.exceptions as known

        of_nodes = (known.NodeDiedError, known.TaskUnschedulableError, known.ActorUnschedulableError)
        if not node.alive or isinstance(error, of_nodes) or "its node has died" in str(error) or getattr(error, "preempted", False):
            return False
        self._deaths[candidate] += 1
        return self._deaths[candidate] >= _DEATHS

    # Benches.

    def _lost(self, stand: _Stand, error: Any) -> None:
        """A bench has gone, with what it was given. Only the first of that can have been its doing."""
        self._stands.remove(stand)
        self._ray.kill(stand.actor)
        calls = [item for item, _ in stand.calls]
        for index, item in reversed(list(enumerate(calls))):
            if index == 0 and self._costs(item.candidate, error, stand.node):
                self._record(item, _native.finding("fault", f"its bench was lost {_DEATHS} times"), 0.0, stand)
            else:
                self._again(item)
        self._looked = 0.0
        self._look()
        stand.node.failures += 1
        if not stand.node.alive:
            return
        if stand.node.failures < _FAILURES:
            return self._open(stand.node)
        self._excluded.append(f"a GPU of {stand.node.name}: {_FAILURES} benches there went one after the other: {_first_line(error)}")
        self._warn(f"{self._excluded[-1]}; it gets no other")

    def _again(self, item: Item) -> None:
        """To be judged anew, first of all; compiled anew if its image has gone with its machine."""
        self._ready.appendleft(item)

    def _exclude(self, stand: _Stand, why: str) -> None:
        """A GPU that does not work. Its bench stays, so that nobody gets that GPU."""
        stand.state = "excluded"
        self._excluded.append(f"{stand.label}: {why}")
        self._warn(f"{stand.label} is excluded: {why}")
        for item, _ in reversed(stand.calls):
            self._again(item)
        stand.calls.clear()

    def _opened(self, stand: _Stand, told: dict[str, str]) -> None:
        stand.gpu = told["gpu"]
        name, arch = told["name"], told["arch"]
        if self._asked.device is not None and self._asked.device not in name:
            return self._exclude(stand, f"it is a {name}, and {self._asked.device} was asked for")
        self._device = self._device or name
        if name != self._device:
            return self._exclude(stand, f"it is a {name}, and verdicts are of a {self._device}: name one kind")
        if self._order.arch is None:
            self._order = self._order._replace(arch=arch)
        stand.state = "waits"
        stand.ref = None

    def _advance(self, stand: _Stand) -> None:
        """A bench has answered what it was asked while it was set up."""
        try:
            told = self._ray.get(stand.ref)
        except self._ray.exceptions.RayError as error:
            return self._lost(stand, error) if _is_death(error) else self._exclude(stand, _first_line(error))
        if stand.state == "opens":
            return self._opened(stand, told)
        self._limits = self._limits or told
        stand.state, stand.ref = "judges", None
        if not self._is_begun:
            self._begin()

    def _judged(self, stand: _Stand) -> None:
        item, ref = stand.calls[0]
        try:
            finding, elapsed, losses = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            if _is_loss(error):
                # Its image went with the machine that had compiled it.
                stand.calls.popleft()
                return self._recompile(item)
            return self._lost(stand, error) if _is_death(error) else self._exclude(stand, _first_line(error))
        stand.node.failures = 0
        stand.calls.popleft()
        stand.since = time.monotonic()
        self.losses += losses - stand.losses
        stand.losses = losses
        self._record(item, finding, elapsed, stand)

    def _recompile(self, item: Item) -> None:
        self._images.pop(item.candidate, None)
        self._waiting[item.candidate] = [item]
        for other in [other for other in self._ready if other.candidate == item.candidate]:
            self._ready.remove(other)
            self._waiting[item.candidate].append(other)
        self._to_compile.appendleft(item.candidate)

    def _set_up(self) -> None:
        for stand in self._stands:
            if stand.state == "waits" and self._image is not None:
                stand.state, stand.since = "measures", time.monotonic()
                stand.ref = stand.actor.measure.remote(self._image, self._limits)

    def _watch_clocks(self) -> None:
        """What does not answer for long is taken for lost."""
        now = time.monotonic()
        for stand in list(self._stands):
            if (stand.calls or stand.ref is not None) and now - stand.since > self._patience:
                self._warn(f"{stand.label} has not answered for {self._patience:.0f} s: its bench is replaced")
                self._lost(stand, "it did not answer")

    def _watch_gpus(self) -> None:
        """Ends an evaluation that no GPU is left for."""
        if self._is_compile_only or self._probes or any(stand.state != "excluded" for stand in self._stands):
            self._idle_since = None
            return
        self._idle_since = self._idle_since or time.monotonic()
        waits = _PATIENCE if self._is_begun and not self._excluded else 0.0
        if time.monotonic() - self._idle_since >= waits and self._looked:
            refused = [f"{node.name}: {node.refused}" for node in self._nodes.values() if node.refused]
            reasons = "; ".join(self._excluded + refused) or "no machine of the cluster has one"
            raise Failure(f"no GPU can be used: {reasons}. The same command goes on once there is one")

    def _refs(self) -> Iterator[Any]:
        yield from self._probes
        yield from self._compiles
        for stand in self._stands:
            if stand.ref is not None and stand.state in ("opens", "measures"):
                yield stand.ref
            yield from (ref for _, ref in list(stand.calls)[:1])

    def _take(self, ready: set[Any]) -> None:
        for ref in ready:
            if ref in self._probes:
                self._probed(self._probes.pop(ref), ref)
            elif ref in self._compiles:
                self._compiled(ref)
        for stand in list(self._stands):
            if stand.ref is not None and stand.ref in ready and stand.state in ("opens", "measures"):
                self._advance(stand)
            elif stand.calls and stand.calls[0][1] in ready:
                self._judged(stand)

    def run(self) -> None:
        """Until all is judged."""
        self._files = self._ray.put({str(path): path.read_bytes() for path in self._plan.files})
        while not self._is_begun or self._left:
            self._look()
            self._set_up()
            if self._is_compile_only and self._image is not None and not self._is_begun:
                self._begin()
            self._feed()
            self._watch_clocks()
            self._watch_gpus()
            refs = list(self._refs())
            if refs:
                self._ray.wait(refs, num_returns=1, timeout=0.2)
                ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
                self._take(set(ready))
            else:
                time.sleep(0.05)
        self.took = time.monotonic() - self._begun

    def end(self) -> None:
        """Ends all benches. Their workers go with them."""
        for stand in self._stands:
            self._ray.kill(stand.actor)
        if self._is_begun and not self.took:
            self.took = time.monotonic() - self._begun


def _is_death(error: Any) -> bool:
    """Whether a process or a machine went, rather than that the work failed."""
    import ray.exceptions as known

    deaths = (
        known.WorkerCrashedError,
        known.RayActorError,
        known.NodeDiedError,
        known.ObjectLostError,
        known.ObjectFetchTimedOutError,
        known.OwnerDiedError,
        known.TaskUnschedulableError,
        known.ActorUnschedulableError,
        known.LocalRayletDiedError,
        known.OutOfMemoryError,
        known.TaskCancelledError,
    )
    return isinstance(error, deaths) or isinstance(getattr(error, "cause", None), deaths)


def _is_loss(error: Any) -> bool:
    """Whether something went that another task had made."""
    import ray.exceptions as known

    losses = (known.ObjectLostError, known.ObjectFetchTimedOutError, known.OwnerDiedError)
    return isinstance(error, losses) or isinstance(getattr(error, "cause", None), losses)


def _first_line(error: Any) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__


def evaluate(asked: Ray, plan: _native.Plan, order: Order, tell: Callable[[str, str], object]) -> Summary:
    """Judges what a plan has on a cluster. An interrupt, and what `tell` raises, is the summary's error."""
    try:
        import ray
    except ImportError as error:
        raise Failure("Ray is not installed: pip install 'cuinstr[ray]'") from error
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(address=asked.address or "local", log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False if asked.address is None else None)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise Failure(f"no Ray cluster can be reached at {asked.address}: {error}") from error
    engine = Engine(ray, asked, plan, order, tell)
    failed: BaseException | None = None
    try:
        engine.run()
    except BaseException as error:
        if not engine._is_begun:
            raise
        failed = error
        if isinstance(error, (Failure, OSError)):
            raise
    finally:
        engine.end()
        if is_ours:
            ray.shutdown()
    return plan.summary(engine.prepared, engine.took, engine.losses, failed)
