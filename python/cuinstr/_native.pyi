"""The compiled part of `cuinstr`."""

from collections.abc import Callable
from pathlib import Path
from typing import final

__all__ = [
    "Armed",
    "Attached",
    "Bench",
    "Checkpoint",
    "Compiler",
    "Failure",
    "Ledger",
    "Left",
    "Lost",
    "Mutant",
    "NoRoom",
    "NotBegun",
    "NotCheckpointable",
    "NotCuda",
    "NotInstrumented",
    "NotLaunched",
    "Outcome",
    "Plan",
    "Poisoned",
    "Refused",
    "Rewritten",
    "Summary",
    "Undrained",
    "Worker",
    "WrongContext",
    "WrongState",
    "__version__",
    "attach",
    "driver",
    "evaluate",
    "finding",
    "instrument",
    "mutants",
    "rewrite",
    "seconds",
    "serve",
    "symbols",
    "verify",
]

__version__: str

class Failure(Exception):
    """Whatever cuinstr refuses, or the driver does."""

class Refused(Failure):
    """The source can't be rewritten; each line names a place and a reason."""

class NotInstrumented(Failure):
    """The module was not rewritten."""

class WrongContext(Failure):
    """No context is current, or a handle is of another one."""

class NotLaunched(Failure):
    """No kernel of the guarded module ran between entering the guard and leaving it."""

class NotBegun(Failure):
    """The GPU has not begun the launch in time; it is still in flight."""

class Undrained(Failure):
    """The kernel was told to stop and still runs: in a loop or a wait without a poll."""

class Poisoned(Failure):
    """An earlier kernel ended the context; only a new process helps."""

class NotCuda(Failure):
    """The process does not use CUDA, or has not initialised it."""

class WrongState(Failure):
    """The process is in another state than the call needs."""

class NotCheckpointable(Failure):
    """The driver can't checkpoint the process: MIG, MPS, aarch64, managed memory, IPC."""

class NoRoom(Failure):
    """The GPU or the host has not enough free memory; nothing was touched."""

class Lost(Failure):
    """The driver failed in the middle of a checkpoint or a restore; end the process."""

@final
class Ledger:
    """Memory at stable addresses, by name."""

    def __new__(cls, device: int, path: str | None) -> Ledger: ...
    def allocate(self, name: str, bytes: int) -> tuple[int, int]:
        """Memory of zeroes under a new name: its address and its bytes."""

    def memory(self, name: str) -> tuple[int, int]:
        """The memory of this name."""

    def names(self) -> list[str]:
        """The names of all memory."""

    def put_paused(self, name: str, armed: Armed) -> None:
        """Takes over a paused launch under a new name."""

    def take_paused(self, name: str) -> Left:
        """What is left of the paused launch of this name."""

    def save(self, path: str, within: float) -> int:
        """Saves it all, and gives the file's size in bytes."""

@final
class Checkpoint:
    """A process by its pid."""

    def __new__(cls, pid: int, program: str, arguments: list[str]) -> Checkpoint: ...
    def state(self) -> str:
        """Its state by its name."""

    def restore_thread_id(self) -> int:
        """The thread that restores it."""

    def lock(self, timeout_ms: int) -> None:
        """Locks it; a timeout of zero is none."""

    def checkpoint(self) -> None:
        """Copies its GPU memory to host memory."""

    def restore(self, pairs: list[tuple[bytes, bytes]]) -> None:
        """Brings it back."""

    def unlock(self) -> None:
        """Unlocks it."""

    def suspend(self, timeout_ms: int) -> None:
        """Locks and checkpoints it, or leaves it running."""

    def resume(self, pairs: list[tuple[bytes, bytes]]) -> None:
        """Restores and unlocks it, or leaves it suspended."""

@final
class Rewritten:
    """A source that was rewritten."""

    @property
    def text(self) -> str:
        """The rewritten source, to be compiled as the original would be."""
    @property
    def sites(self) -> str:
        """Its sites as a JSON object: every loop, and how it is polled."""
    @property
    def diagnostics(self) -> list[str]:
        """What the rewriter has to say, a line each: gaps that no poll covers, above all."""

@final
class Outcome:
    """How a guarded launch ended."""

    @property
    def kind(self) -> str:
        """"completed": every thread did all its work. "stopped": threads left, and the context lives. "paused": blocks are left, and run when it is
        resumed. "faulted": the context is lost."""
    @property
    def completed(self) -> bool:
        """Whether every thread did all its work."""
    @property
    def stopped(self) -> bool:
        """Whether threads were stopped."""
    @property
    def paused(self) -> bool:
        """Whether blocks are left that run when it is resumed."""
    @property
    def done(self) -> int | None:
        """Blocks that have run, of a launch that is paused."""
    @property
    def left(self) -> int | None:
        """Blocks that have not run, of a launch that is paused."""
    @property
    def why(self) -> str | None:
        """Why it was stopped: "deadline", "cancelled", "budget" or "fuel"."""
    @property
    def elapsed(self) -> float | None:
        """Seconds from arming until the end was seen, of a launch that completed."""
    @property
    def latency(self) -> float | None:
        """Seconds from the reason to stop, or the request to pause, until every thread had left."""
    @property
    def fuel_used(self) -> int | None:
        """Most iterations that one thread ran, if they were counted."""
    @property
    def threads(self) -> int:
        """Threads that were stopped."""
    @property
    def kernel(self) -> str | None:
        """Name of the kernel, if it is known."""
    @property
    def file(self) -> str | None:
        """File of the loop where the first thread was stopped, if a site map is known."""
    @property
    def line(self) -> int | None:
        """Its line, from 1."""
    @property
    def column(self) -> int | None:
        """Its column in bytes, from 1."""
    @property
    def function(self) -> str | None:
        """The function around it."""
    @property
    def block(self) -> tuple[int, int, int] | None:
        """blockIdx of the first thread that was stopped."""
    @property
    def thread(self) -> tuple[int, int, int] | None:
        """Its threadIdx."""
    def json(self) -> str:
        """All of it as one JSON object."""

@final
class Attached:
    """A rewritten module that somebody else loaded."""

    @property
    def kernel(self) -> str:
        """Name of its kernel; empty if there may be several."""
    def arm(
        self,
        stream: int,
        timeout: float | None,
        fuel: int | None,
        budget_cycles: int | None,
        count_fuel: bool,
        grace: float,
        begin_within: float,
        extents: tuple[list[int], list[int]] | None,
        pausable: bool,
    ) -> Armed:
        """Arms it for what is launched next on the stream; times are in seconds."""

    def arm_left(self, stream: int, left: Left) -> Armed:
        """Arms it for what is left of a paused launch."""

@final
class Left:
    """What is left of a paused launch."""

    @property
    def blocks(self) -> int:
        """How many blocks are left."""
    @property
    def grid(self) -> list[int]:
        """The grid that is launched again."""

@final
class Armed:
    """A launch from its arming until its outcome is known."""

    def launched(self) -> None:
        """The launch was made."""
    def finish(self) -> Outcome | None:
        """The launch was made: says so, and waits for the outcome."""
    def pause(self, within: float) -> Outcome:
        """Has blocks that have not begun decline to run, and waits for the others at most so many seconds."""
    def resume(self, stream: int) -> None:
        """Arms the next part in another stream."""
    def cancel(self) -> None:
        """Tells it to stop."""
    def give_up(self) -> None:
        """Cancels it and gives it its grace time to leave."""
    def wait(self, limit: float | None) -> Outcome | None:
        """The outcome, or None if it is not known after so many seconds."""

@final
class Worker:
    """A worker process with spares behind it."""

    def __new__(cls, program: str, arguments: list[str], device: int, spares: int) -> Worker:
        """Starts it: `program` with `arguments` calls `serve`."""
    def run(
        self,
        image: bytes,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        arguments: list[tuple[bytes | None, int, bool, bool]],
        times: tuple[float | None, float, float],
        fuel: int | None,
        cooperative: bool,
        since: int,
    ) -> tuple[Outcome, list[bytes | None]]:
        """Runs a kernel of a module, unless it was told to stop since it had been so often, and gives its outcome and what its memory holds then, None where that was lost."""
    def cancel(self) -> None:
        """Tells what it runs, or is about to run, to stop, from any thread."""
    def close(self) -> None:
        """The same, and lets no task begin any more."""
    @property
    def cancels(self) -> int:
        """How often it was told to stop what it runs."""
    @property
    def is_busy(self) -> bool:
        """Whether it has a task: a cancel holds for that one."""
    @property
    def losses(self) -> int:
        """Processes that were lost so far."""

def serve() -> Exception:
    """Serves as a worker, and does not return, if this process was started as one."""

@final
class Mutant:
    """One small change of a device function."""

    @property
    def operator(self) -> str:
        """The operator that made it, such as "loop-bound"."""
    @property
    def line(self) -> int:
        """Line of the change, from 1."""
    @property
    def column(self) -> int:
        """Its column in bytes, from 1."""
    @property
    def function(self) -> str:
        """The function that is changed."""
    @property
    def before(self) -> str:
        """What stands there in the original."""
    @property
    def after(self) -> str:
        """What the mutant has instead."""
    @property
    def source(self) -> str:
        """The whole changed source."""

@final
class Summary:
    """All verdicts of an evaluation. Its text is a table."""

    @property
    def complete(self) -> bool:
        """Whether every candidate was judged as often as asked."""
    @property
    def error(self) -> BaseException | None:
        """What stopped it: KeyboardInterrupt, or what `watch` raised."""
    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many candidates have each verdict, the first time that they were judged."""
    def json(self) -> str:
        """All but the judgements, as one JSON object."""
    def matrix(self) -> str:
        """The verdict of each candidate in each case, as comma-separated values."""
    def lines(self) -> list[str]:
        """The judgements, each as a JSON object, as the journal has them."""

@final
class Plan:
    """Candidates, journal and verdicts of an evaluation."""

    def __new__(
        cls,
        spec: str,
        files: list[str],
        mutants: int | None,
        operators: list[str] | None,
        by: str,
        journal: str | None,
        repeat: int,
        all_cases: bool,
        measure: bool,
        compile_only: str | None,
    ) -> Plan: ...
    @property
    def spec(self) -> Path:
        """Absolute path of the specification."""
    @property
    def files(self) -> list[Path]:
        """Absolute paths of all files that judging the candidates takes."""
    @property
    def limits(self) -> str | None:
        """The limits that the journal's verdicts were given under, as JSON."""
    @property
    def reference(self) -> tuple[str, bytes]:
        """The reference: a name and its text."""
    def condition(self, name: str) -> str | None:
        """What the journal says of a condition of its verdicts, such as "device"."""
    def candidate(self, index: int) -> tuple[str, bytes]:
        """A candidate: what compilers call it, and its text."""
    def begin(self, compiler: str, arch: str, device: str, driver: str, limits: str) -> tuple[list[tuple[int, int]], int]:
        """Says what is left, as the numbers of candidates and rounds, and how many judgements the journal had. Limits are JSON."""
    def record(self, candidate: int, round: int, finding: str, elapsed: float, device: int | None, node: str | None) -> str | None:
        """Writes a finding down, as JSON, and gives the judgement. None if there is one already."""
    def summary(self, prepared: float, took: float, losses: int, error: BaseException | None) -> Summary:
        """Ends it."""

@final
class Compiler:
    """A process that compiles."""

    def __new__(
        cls, root: str, spec: str, folder: str, arch: str, by: str, is_plain: bool, starts: tuple[str, list[str], list[str]]
    ) -> Compiler: ...
    def compile(self, name: str, source: bytes) -> tuple[tuple[bytes, str, str] | None, str | None]:
        """Compiles a candidate."""

@final
class Bench:
    """A worker on a GPU that judges one candidate after the other."""

    def __new__(
        cls,
        root: str,
        spec: str,
        device: int,
        by: str,
        all_cases: bool,
        spares: int,
        measure: str | None,
        starts: tuple[str, list[str], list[str]],
    ) -> Bench: ...
    @property
    def name(self) -> str:
        """Name of the GPU."""
    @property
    def arch(self) -> str:
        """Its architecture."""
    @property
    def losses(self) -> int:
        """Processes that were lost so far."""
    def measure(self, code: bytes, kernel: str, known: str | None) -> str:
        """Runs the reference, and gives limits for candidates as JSON; those that are known already, if there are."""
    def judge(self, name: str, source: bytes, code: bytes, kernel: str, limits: str) -> str:
        """Judges a candidate under limits, and gives a finding, all as JSON."""
    def stop(self) -> None:
        """Cancels what runs, from any thread; nothing begins any more."""

def driver() -> str:
    """Version of the GPU's driver."""

def finding(verdict: str, message: str | None) -> str:
    """A candidate that nothing can be done about: its verdict and a reason."""

def evaluate(
    spec: str,
    files: list[str],
    mutants: int | None,
    operators: list[str] | None,
    by: str,
    journal: str | None,
    repeat: int,
    all_cases: bool,
    measure: bool,
    devices: list[int],
    spares: int,
    jobs: int,
    compile_only: str | None,
    baseline: tuple[bool, int, int] | None,
    executable: str,
    arguments: list[str],
    libraries: list[str],
    watch: Callable[[str, str], object],
) -> Summary:
    """Judges candidates, and calls `watch` with what happens: a name, and JSON."""

def mutants(source: str, most: int | None, operators: list[str] | None) -> list[Mutant]:
    """The mutants of a source."""

def symbols(path: str, names: list[str]) -> list[tuple[str, int]]:
    """The symbols of a library with one of these names, each with its place in the library."""

def attach(kind: str, handle: int, image: bytes | None, kernel: str | None, folder: str | None) -> Attached:
    """Binds a module of the current context by a handle of the driver's."""

def rewrite(
    source: str,
    path: str,
    timeout_ns: int | None,
    budget_cycles: int | None,
    fuel: int | None,
    polls_each: bool,
    strict: bool,
    loop_macros: list[str],
    device_macros: dict[str, str],
    leave_alone: list[str],
    barrier_marks: str,
    pausable: bool,
) -> Rewritten:
    """Rewrites CUDA source."""

def instrument(ptx: bytes, path: str, polls_each: bool, strict: bool, leave_alone: list[str]) -> Rewritten:
    """Puts polls into PTX."""

def verify(ptx: str, path: str) -> tuple[list[str], str]:
    """What is not proved of PTX, a line each, and all that was found, as JSON."""

def seconds(text: str) -> float:
    """Seconds of a time such as `500ms`."""
