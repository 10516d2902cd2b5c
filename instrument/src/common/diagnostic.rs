//! Diagnostics as plain data.

use serde::{Serialize, Serializer};
use std::ops::Range;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something to know; nothing is missing.
    Note,
    /// A gap: something that may run for ever is not polled. An error under `--strict`.
    Warning,
    /// Nothing was written.
    Error,
}

macro_rules! codes {
    ($($variant:ident $id:literal $severity:ident $title:literal, $explain:literal;)*) => {
        /// Stable codes. A code never changes its meaning, and a retired one is not used again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $title] $variant,)* }

        impl Code {
            /// All codes in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name, such as `CI010`.
            #[must_use]
            pub fn id(self) -> &'static str { match self { $(Self::$variant => $id,)* } }

            /// Its message, in a few words.
            #[must_use]
            pub fn title(self) -> &'static str { match self { $(Self::$variant => $title,)* } }

            /// Severity outside `--strict`.
            #[must_use]
            pub fn severity(self) -> Severity { match self { $(Self::$variant => Severity::$severity,)* } }

            /// What it means, why it matters and what to do; the text of `cuinstr explain`.
            #[must_use]
            pub fn explain(self) -> &'static str { match self { $(Self::$variant => $explain,)* } }
        }
    };
}

codes! {
    NotUtf8 "CI001" Error "the source is not UTF-8",
        "Outside comments, cuinstr reads CUDA source as UTF-8, as nvcc's front end does. A byte that is no UTF-8 stands in code or in a string.\n\nConvert the file, for example with\n\n    iconv -f latin1 -t utf-8 kernel.cu > kernel.utf8.cu\n\nIn comments other encodings are accepted; CI002 says so.";
    OtherEncodingInComment "CI002" Note "a comment is not UTF-8",
        "A comment holds bytes that are no UTF-8, Latin-1 for example. They are kept as they are.";
    Empty "CI003" Error "the file is empty",
        "There is nothing to rewrite: the file holds no token, only white space or comments at most.\n\nCheck the path, and that the file was generated before cuinstr ran.";
    OwnOutput "CI004" Error "the source is already rewritten",
        "The source holds names that only cuinstr inserts (they begin with `__cuinstr_` or are `cuinstr_control_v1` and `cuinstr_flag_v1`). Rewriting it again would double every poll, and source that brings these names itself could keep a kernel from being stopped.\n\nRun cuinstr on the original file. If the names are yours, rename them: they are reserved.";
    Unbalanced "CI005" Error "brackets do not match",
        "A bracket is not closed, or closed by one of another kind, whichever arms of `#if` are taken. Arms whose condition is false by itself count for nothing (`#if 0`, `#elif 0 && A`). nvcc would refuse the file too, and no rewrite of it could be trusted.\n\nIf nvcc accepts the file, a macro holds the other half of the pair: write the bracket out in the file.";
    NotCuda "CI006" Error "no device code found",
        "The file holds no function marked `__global__` or `__device__`, directly or by a macro that cuinstr knows, and no macro with a loop that device code could use. Headers that it includes were not looked at where CI016 names them. It may be a binary, PTX, or plain C++.\n\nIf its functions are marked by a macro that is defined elsewhere, name it in cuinstr.toml:\n\n    [device-macros]\n    MY_DEVICE = \"device\"        # or \"kernel\", \"host-device\"";
    TooLarge "CI007" Error "the file is larger than 4 GiB",
        "Offsets are 32 bits wide. Split the file.";
    NotInPtx "CI008" Error "fuel can't be counted in this function",
        "In PTX a kernel counts its fuel for itself. A function that kernels call can't see what its kernel has used, and one that repeats would get fuel of its own at each call.\n\nHave the compiler inline the function (`__forceinline__`), give the CUDA source, or limit the launch by time (`--timeout`, or arm it as docs/HOSTS.md says).";
    UnknownLoopMacro "CI010" Warning "an unknown macro stands where a loop may be",
        "Inside device code a macro that this file does not define is followed by a block or a statement, as in\n\n    CUDA_KERNEL_LOOP(i, n) { ... }\n\nIf it opens a loop, its header is not in sight. In front of a block, a poll is put at the brace: harmless if there is no loop. In front of a bare statement nothing can be inserted.\n\nPut braces around the statement, and name the macro in cuinstr.toml:\n\n    loop-macros = [\"CUDA_KERNEL_LOOP\"]";
    TokensOnly "CI011" Warning "a loop was found by its tokens alone",
        "The parser could not make sense of the code around this loop, so only the lexer vouches for where it begins and ends. It is polled, by a form that needs no more than its keyword and header.\n\nThe usual cause is a macro that hides a bracket or a semicolon. Expand it, or accept the loop with\n\n    // cuinstr: allow(CI011) reason";
    NotPolled "CI012" Warning "a loop is not polled",
        "This loop keyword in device code got no poll: its shape leaves no place where text can be inserted safely, for example a range-`for` without braces around a macro, or a header that `#if` splits.\n\nNor do loops that come out of a macro whose text is not rewritten: one of the compiler's command line (`-D`), or of a header that stays as it is. The use is named, in a function's body or where the macro makes a device function of its own.\n\nPut braces around the loop's body, or move the `#if` out of its header. Move a macro's text into a file of the project.";
    AsmLoop "CI013" Warning "inline assembly holds a loop",
        "The text of an `asm` statement branches to a label of its own, or may do so: a macro or a file that is included makes a part of it. Assembly is never edited, so this loop has no poll: if it hangs, only a trap from outside or a killed process ends it.\n\nWrite the loop in C++ around a single instruction, or accept it with\n\n    // cuinstr: allow(CI013) reason";
    UnmarkedDeviceCode "CI014" Note "a function looks like device code but is not marked",
        "The function uses `threadIdx`, `__syncthreads` or the like, but no attribute or macro known to cuinstr marks it. Its loops are polled by a form that a host passes by. Where the function is a kernel, nothing stands at its entry and exits.\n\nName the macro that marks it in cuinstr.toml:\n\n    [device-macros]\n    KERNEL = \"kernel\"           # or \"device\", \"host-device\"";
    TileCode "CI015" Warning "tile code can't be polled",
        "Functions of CUDA Tile C++ (`__tile__`, `__tile_global__`) have no threads that could leave. They are left as they are.";
    HeaderNotRewritten "CI016" Warning "an included header is not rewritten",
        "The file includes a header that was not rewritten with it. Loops in device code of that header have no polls, and nothing is known of functions that its macros mark.\n\nCompile through the launcher, which rewrites the project's headers along (`cuinstr nvcc -c kernel.cu`), name the header on the same command line, or accept it with\n\n    // cuinstr: allow(CI016) reason\n\nHeaders of the C and C++ libraries and CUDA headers that hold no loops are not reported, and neither are quoted headers beside the file whose device code repeats nothing. A header of the user's with the name of a system header is told apart where `-I DIR` names its folder.\n\nThe launcher does not rewrite headers of -isystem. It reports those that the compiler read and whose device code may repeat: use --pass ptx, or -I.";
    KeywordRedefined "CI017" Warning "a keyword is redefined",
        "A macro has the name of a word of the language, and its text does not mean what the word means. Two kinds of words matter.\n\nA word that decides where control goes (`for`, `while`, `do`, `if`, `else`, `switch`, `case`, `default`, `goto`, `return`, `break`, `continue`):\n\n    #define for if (0) ; else for\n\nThe text does not tell what is a loop then. In all files of the unit, loops get the plainest poll.\n\nA word by which trips are counted (`int`, `unsigned`, `long`, `short`, `char`, `bool`, `true`, `const`, `sizeof` and the like):\n\n    #define int short\n\nThe text does not tell how often a loop runs then. In all files of the unit, each loop polls each time round.\n\nNothing is said of other words (`inline`, `private`), of `float` and `double`, and of texts that mean the same: the word itself, or the compilers' spelling of it (`#define signed __signed__`), `true` as `1`, `false` as `0`, `bool` as another type of numbers. What cuinstr inserts names types and values by names of its own, so no macro changes it.\n\nRename the macro.";
    CalleeElsewhere "CI018" Warning "a function is in another file",
        "The PTX calls a function whose body it does not hold. Loops in it are polled only if the file that holds it is instrumented, too. The caller polls where it begins if the callee may lead back to it.\n\nInstrument the PTX of all units that are linked together.";
    CompilerLoop "CI019" Warning "a loop that the compiler makes is not polled",
        "The compiler makes loops of its own: `new T[n]` and `delete[]` go from object to object, `memcpy` and `memset` from byte to byte, and an array's initial values from element to element. The text has no loop there, so no poll can stand in it. Where the count is no small constant, nothing bounds the time between two polls.\n\nWrite the loop out, so that it gets a poll:\n\n    for (size_t i = 0; i < n; ++i) to[i] = from[i];\n\nor accept it with\n\n    // cuinstr: allow(CI019) reason";
    LeaveUndefined "CI020" Note "threads do not leave here",
        "The function uses hardware for which CUDA does not define what happens when a thread leaves in the middle: bulk or tensor copies, `wgmma`, `tcgen05`, `setmaxnreg`, cluster peers' shared memory. Its polls trap as everywhere; under `leave` they publish that the launch must stop and go on, and the launch falls to the next tier.";
    BarrierNotChecked "CI021" Note "after this barrier the flag is not checked",
        "A thread that others' leaving releases from this barrier runs on, with what the others have not written, until its next poll. After a plain `__syncthreads();` statement a check is inserted; after barriers inside expressions, macros and callees there is none.";
    GateReturn "CI022" Error "a gate would wait for a barrier that waits for the gate",
        "With `--at-exit gate` threads that are done wait for the rest of their block. A thread that returns early would so keep `__syncthreads` waiting: it counts threads that have left, not those that wait at the gate.\n\nUse `--at-exit check` for this file, or let the early threads reach the barrier.";
    GateCluster "CI023" Error "a gate and a cluster do not go together",
        "With `--at-exit gate` a block's threads wait for their block, while other blocks of its cluster may wait for them. Use `--at-exit check` for this file.";
    PausableLaunches "CI024" Error "what the device launches can't be paused",
        "With `--pausable` a block asks where it begins whether its launch shall pause. A kernel that the device launches shares these words with the launch that the host made: its blocks would decline in the other one's name.\n\nLaunch from the host, or leave `--pausable` away for this file.";
    NeverPauses "CI025" Warning "a kernel's blocks never decline to run",
        "The blocks of a cluster begin and end together, so one of them can't decline. A launch of this kernel runs to its end, whoever asks it to pause.";
    SeveralWaysIn "CI026" Warning "a cycle has several ways in",
        "Where threads of a warp come into a cycle by different ways, ptxas may keep what they count in a register that the warp has once. Then a right program computes something else. It copies some such cycles and is right there, but not always once they have polls. The pass leads all ways in through one place, which is right. It could not here: the labels lie in different braces.\n\nMove the labels between the same braces, or compile by `ptxas -O0`.";
    StaleWaiver "CI030" Error "a waiver accepts nothing",
        "No diagnostic of this code came up where the waiver stands. The code it spoke of has changed: remove the waiver.";
    WaiverWithoutReason "CI031" Error "a waiver gives no reason",
        "Write why the gap is harmless, after the code:\n\n    // cuinstr: allow(CI013) the peer always signals within a microsecond";
    UnknownWaiver "CI032" Error "a waiver names no known code",
        "`cuinstr explain` without an argument lists the codes. Errors can't be waived.";
    CannotRead "CI040" Error "the input can't be read",
        "The file is missing, is a directory, or may not be read.";
    OutputIsInput "CI041" Error "the output would overwrite the input",
        "cuinstr never writes over what it reads. Name another file, for example\n\n    cuinstr kernel.cu -o kernel.inst.cu";
    CannotWrite "CI042" Error "the output can't be written",
        "The output is written to a temporary file beside its place and then renamed, so a failure leaves what was there before.";
    BadConfig "CI043" Error "the configuration can't be used",
        "cuinstr.toml is no TOML, or holds a key or a value that cuinstr does not know.";
    NotStoppable "CI050" Error "a loop can't be stopped",
        "`cuinstr verify` found a cycle in the PTX that a thread can go round for ever although the flag says stop: some round of it neither asks for the flag and leaves, nor is counted, nor is ended by the clock.\n\nIf the loop is yours, rewrite its file with cuinstr and compile again. If it comes from a header or library, rewrite that header, avoid the function, or accept the loop in a list:\n\n    [[allow]]\n    place = \"sync.h:98\"\n    reason = \"all blocks are resident\"";
    TrapsOnly "CI051" Error "a loop's threads go on under `leave`",
        "The loop asks for the flag. Under `trap` its threads trap when it says stop; under `leave` they only say so and go on, as they do where leaving is not defined (CI020). A launch that hangs there falls to the next tier.";
    WaitsInHardware "CI052" Error "a loop waits in hardware",
        "Each round waits for an mbarrier, which hardware moves on, and nothing in it asks for the flag. If what it waits for never comes, only a trap from outside or a killed process ends it.";
    UnknownCallee "CI053" Error "a function is not in sight",
        "The PTX calls a function whose body it does not hold, or calls through a pointer that no function of it fits. Nothing is known of the loops in there.\n\nVerify the PTX of all translation units that are linked together, and accept the call in a list.";
    UnsoundPtx "CI054" Error "the PTX can't be made sense of",
        "The text is cut short, branches to labels that are not there, or is no PTX. Nothing is proved about it, whatever its loops look like.";
    MachineCodeOnly "CI055" Error "there is machine code without its PTX",
        "`cuinstr verify` reads PTX. This part of the file holds machine code only, or could not be read, so nothing is proved about it.\n\nKeep the PTX beside the machine code, for example with\n\n    nvcc -gencode arch=compute_90,code=[sm_90,compute_90]";
    StaleException "CI056" Error "an exception accepts nothing",
        "Nothing in the files matches this entry of the list that `--allow` names. What it spoke of has changed: remove the entry.";
    BadExceptions "CI057" Error "the list of exceptions can't be used",
        "The file that `--allow` names is TOML with entries of this form; at least one of function, place and verdict is given, and the reason always:\n\n    [[allow]]\n    function = \"wait_for_peer\"      as the linker or as people write it\n    place = \"sync.h:98\"             file and line, of the loop or of a call that it was inlined through\n    verdict = \"waits-in-hardware\"   or not-polled, too-many, trap-only, unknown-callee\n    reason = \"the peer always signals\"";
    NoClang "CI058" Error "there is no libclang",
        "`cuinstr audit` reads source by libclang, which it loads at run time. None was found, or it can't be loaded.\n\nInstall version 16 or newer with clang's own headers, on Debian and Ubuntu for example with\n\n    apt-get install libclang1-19 libclang-common-19-dev\n\nand if it lies elsewhere, name its folder in LIBCLANG_PATH.";
    NoToolkit "CI059" Error "there are no CUDA headers",
        "`cuinstr audit` reads source with the headers of a CUDA toolkit, as nvcc does.\n\nName the toolkit's folder, the one that holds include/cuda_runtime.h, with `--cuda-path` or in CUDA_HOME, or put its nvcc on the path.";
    NotParsed "CI060" Warning "clang reports an error",
        "clang's front end does not accept a part of the source that nvcc may well accept. Loops in that part may be missing from the audit.\n\nCheck that the flags behind `--` are those of the build. What only nvcc knows can be left out for clang with `#ifndef __clang__`.";
    TooManyRounds "CI061" Error "too much may happen without a poll",
        "Each loop here ends, but the iterations of loops within loops, and of the functions that they call, multiply; calls of one function add up. Together more than 2^26 iterations or calls, or more than a second by the clock, may pass between two polls, so a stop would come late.\n\nIf the code is yours, rewrite its file with cuinstr and compile again. If it comes from a header, rewrite that header, bound an outer loop, or accept the place in a list:\n\n    [[allow]]\n    place = \"solve.h:98\"\n    verdict = \"too-many\"\n    reason = \"n is at most 64 here\"";
    ControlWritten "CI062" Error "the control block is written",
        "The PTX stores to the control block, or to the word that the host stops kernels by. A kernel that changes its launch's number or the flag's pointer, or clears the flag, can't be stopped, whatever its loops ask. Nor can one whose loads may leave the flag in the first cache: polls would find it there, as it was.\n\nOnly what stops a thread writes there: the launch's number to the flag, the launch's start, and the stop record. Remove the store or the load, or rename the variable if it is not meant to be cuinstr's.";
    NothingToProve "CI063" Error "there is no kernel",
        "`cuinstr verify` found device code in the file, but no kernel. So it says nothing of any kernel of yours.\n\nName the file that holds the kernels: the PTX, object, library or executable that nvcc wrote. Functions of a separately compiled unit without kernels are proved with the program that they are linked into.";
}

impl Code {
    /// The code of that id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id() == id)
    }
}

impl From<cuinstr_verify::report::Code> for Code {
    fn from(code: cuinstr_verify::report::Code) -> Self {
        use cuinstr_verify::report::Code as Proof;
        match code {
            Proof::NotStoppable => Self::NotStoppable,
            Proof::TrapsOnly => Self::TrapsOnly,
            Proof::WaitsInHardware => Self::WaitsInHardware,
            Proof::UnsoundPtx => Self::UnsoundPtx,
            Proof::TooManyRounds => Self::TooManyRounds,
            Proof::ControlWritten => Self::ControlWritten,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// A place in the source, with a remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Bytes of the source.
    pub span: Range<usize>,
    /// What is there; may be empty.
    pub message: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Which.
    pub code: Code,
    /// How much it matters in this run.
    pub severity: Severity,
    /// What was found: lower case, no full stop.
    pub message: String,
    /// Function it lies in.
    pub function: Option<String>,
    /// Where; absent for what concerns the whole file.
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// What to type.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding of the code's own severity.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, severity: code.severity(), message: message.into(), function: None, primary: None, secondary: Vec::new(), help: None }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.primary = Some(Label { span, message: String::new() });
        self
    }

    /// Says in which function.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> Self {
        self.function = Some(name.into());
        self
    }

    /// Points to another place.
    #[must_use]
    pub fn with(mut self, span: Range<usize>, message: impl Into<String>) -> Self {
        self.secondary.push(Label { span, message: message.into() });
        self
    }

    /// Says what to type.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
