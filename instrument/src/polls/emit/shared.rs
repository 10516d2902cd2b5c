//! Polls of functions with many of them: each calls one function. ptxas compiles that once, and the user's function is smaller. A call takes registers, but
//! such functions have many.

use super::Poll;
use crate::options::Limits;

/// Loops that poll from which on a function's polls are calls, and its statements. A smaller one would need more registers: a call keeps values in those
/// that callees spare.
const MANY: (usize, usize) = (12, 512);

/// Whether a function of so many loops that poll and so many statements is better off so.
pub(in crate::polls) fn pays(loops: usize, statements: usize) -> bool {
    loops >= MANY.0 && statements >= MANY.1
}

/// A call, up to the site's number and behind it. What comes back is clamped, so that its bounds are seen without the function.
pub(super) const CALL: [&str; 2] = [
    "{\n\t.reg .b32 was;\n\t.reg .b64 at;\n\t.param .b64 __cuinstr_site;\n\t.param .b64 __cuinstr_keeps;\n\t.param .b32 __cuinstr_has;\n\t\
     .param .b32 __cuinstr_fresh;\n\tmov.b64 at, __cuinstr_kept;\n\tst.param.b64 [__cuinstr_keeps], at;\n\tselp.b32 was, 1, 0, %__cuinstr_paced;\n\t\
     st.param.b32 [__cuinstr_has], was;\n\tmov.b64 at, ",
    ";\n\tst.param.b64 [__cuinstr_site], at;\n\tcall (__cuinstr_fresh), __cuinstr_poll, (__cuinstr_site, __cuinstr_keeps, __cuinstr_has);\n\t\
     ld.param.b32 %__cuinstr_left, [__cuinstr_fresh];\n\tmin.u32 %__cuinstr_left, %__cuinstr_left, @MOST@;\n\tsetp.eq.u32 %__cuinstr_paced, was, was;\n\t}\n",
];

/// The function, made of a poll's text up to its site's number, the text behind it, and where its threads stop.
pub(super) fn function([front, behind, stops]: [&str; 3]) -> String {
    let declared = Poll::declare(Limits::default());
    format!(
        ".func (.param .b32 fresh) __cuinstr_poll(.param .b64 at, .param .b64 keeps, .param .b32 has)\n{{{declared}\n\t.reg .pred %__cuinstr_paced;\n\t\
         .reg .b32 %__cuinstr_left, was;\n\t.reg .b64 site, __cuinstr_kept;\n\tld.param.b64 site, [at];\n\tld.param.b64 __cuinstr_kept, [keeps];\n\t\
         ld.param.b32 was, [has];\n\tsetp.ne.u32 %__cuinstr_paced, was, 0;\n\t{front}site{behind}\tst.param.b32 [fresh], %__cuinstr_left;\n\tret;\n{stops}}}\n"
    )
}
