//! Includes of a file. Headers that are not rewritten may hold device code with loops.

use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::options::Options;
use crate::source::syntax::condition;
use crate::source::syntax::token::{Lexed, Line};

/// Headers in angle brackets, or of the toolkit, that hold no loop which device code could run.
const WITHOUT_LOOPS: &str = "cuda.h cuda_runtime.h cuda_runtime_api.h cuda_bf16.h cuda_fp16.h cuda_fp8.h cuda_fp4.h cuda_fp6.h \
    device_launch_parameters.h device_functions.h device_atomic_functions.h sm_20_intrinsics.h mma.h math_constants.h vector_types.h \
    vector_functions.h builtin_types.h crt/host_defines.h host_defines.h cuComplex.h cuda_pipeline.h cuda_pipeline_primitives.h \
    cuda_profiler_api.h nvtx3/nvToolsExt.h cublas_v2.h cudnn.h cufft.h cusparse.h curand.h nvrtc.h nccl.h mpi.h omp.h";

/// C++'s own headers. Their loops are the host's, but under `--expt-relaxed-constexpr`, where device code names what it calls.
const OF_CPP: &str = "algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono cinttypes ciso646 \
    climits clocale cmath codecvt compare complex concepts condition_variable contracts coroutine csetjmp csignal cstdalign cstdarg cstdbool \
    cstddef cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar cwctype debugging deque exception execution expected filesystem flat_map \
    flat_set format forward_list fstream functional future generator hazard_pointer initializer_list inplace_vector iomanip ios iosfwd iostream \
    istream iterator latch limits linalg list locale map mdspan memory memory_resource mutex new numbers numeric optional ostream print queue \
    random ranges ratio rcu regex scoped_allocator semaphore set shared_mutex simd source_location span spanstream sstream stack stacktrace \
    stdexcept stdfloat stop_token streambuf string string_view strstream syncstream system_error text_encoding thread tuple type_traits typeindex \
    typeinfo unordered_map unordered_set utility valarray variant vector version";

/// Names of C's own headers.
const OF_C: &str = "assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h stdalign.h \
    stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h tgmath.h threads.h time.h uchar.h wchar.h \
    wctype.h unistd.h pthread.h";

/// Headers that are not rewritten with the file and may hold device code.
pub(crate) fn not_rewritten(source: &[u8], lexed: &Lexed, options: &Options) -> Vec<Diagnostic> {
    if options.in_unit {
        return Vec::new();
    }
    let arms = condition::arms(&lexed.directives);
    let includes = lexed.directives.iter().zip(&arms).filter(|(directive, arm)| directive.line == Line::Include && arm.live);
    let named = includes.filter_map(|(directive, _)| Some((directive.span.clone(), included(&source[directive.span.clone()])?)));
    let is_among = |list: &[String], name: &[u8], quoted: bool| {
        let (open, close) = if quoted { (b'"', b'"') } else { (b'<', b'>') };
        list.iter().any(|known| known.as_bytes().strip_prefix(&[open]).and_then(|rest| rest.strip_suffix(&[close])) == Some(name))
    };
    let is_harmless = |name: &[u8], quoted| is_among(&options.harmless_headers, name, quoted);
    // A file in the user's folders comes before any of the same name elsewhere.
    let is_foreign = |name: &[u8], quoted| is_among(&options.own_headers, name, quoted) || !is_known(name);
    let unknown =
        named.filter(|(_, (name, quoted))| is_foreign(name, *quoted) && !is_rewritten(name, options) && !is_harmless(name, *quoted));
    unknown
        .map(|(span, (name, _))| {
            let name = String::from_utf8_lossy(name);
            let help = "compile through the launcher (`cuinstr nvcc`), which rewrites headers too, or name the header beside this file";
            Diagnostic::new(Code::HeaderNotRewritten, format!("`{name}` is not rewritten: loops of its device code have no polls"))
                .at(span)
                .help(help)
        })
        .collect()
}

/// The file of an `#include`: the text between quotes or angle brackets, or a macro's name. And whether it is quoted.
pub(crate) fn included(directive: &[u8]) -> Option<(&[u8], bool)> {
    let word = directive.strip_prefix(b"#").or_else(|| directive.strip_prefix(b"%:"))?.trim_ascii_start();
    let rest = word.strip_prefix(b"include_next").or_else(|| word.strip_prefix(b"include"))?.trim_ascii();
    let close = match rest.first()? {
        b'"' => b'"',
        b'<' => b'>',
        _ => return Some((rest, false)),
    };
    Some((rest[1..].split(|byte| *byte == close).next().unwrap_or_default(), close == b'"'))
}

fn is_known(name: &[u8]) -> bool {
    let is_in = |list: &str| list.split_ascii_whitespace().any(|known| known.as_bytes() == name);
    name.starts_with(b"sys/") || is_in(WITHOUT_LOOPS) || is_in(OF_C) || is_in(OF_CPP)
}

/// Whether one of the files that are rewritten, too, may be the one that is named.
fn is_rewritten(name: &[u8], options: &Options) -> bool {
    let mut rest = name;
    while let Some(behind) = rest.strip_prefix(b"./").or_else(|| rest.strip_prefix(b"../")) {
        rest = behind;
    }
    options
        .rewritten_too
        .iter()
        .any(|path| path.as_bytes().strip_suffix(rest).is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/")))
}
