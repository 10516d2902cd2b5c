//! What the source pass counts and tells, in small sources.

use crate::diagnostic::Code;
use crate::options::Options;
use crate::{Rewrite, rewrite};

fn rewritten(body: &str) -> Rewrite {
    let source = format!("#define AGAIN goto again\n__global__ void k(int* p) {{ {body} }}\n");
    rewrite(source.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() })
}

#[test]
fn loops_that_have_no_poll_are_counted_and_told() {
    for (body, loops) in [
        ("again: p[0]++; if (*p) AGAIN;", 1),
        ("again: p[0]++; if (*p) AGAIN; if (p[1]) AGAIN;", 2),
        ("while p[0] { p[0]--; }", 1),
        ("if (p[0]) for; if (p[1]) for; p[2] = 2;", 2),
    ] {
        let rewrite = rewritten(body);
        assert_eq!((rewrite.summary.loops, rewrite.summary.polled, rewrite.summary.gaps), (loops, 0, loops), "{body}");
        assert!(rewrite.diagnostics.iter().all(|diagnostic| diagnostic.code == Code::NotPolled), "{body}: {:?}", rewrite.diagnostics);
    }
    // It jumps ahead.
    assert_eq!(rewritten("if (*p) AGAIN; p[0]++; again: p[1]++;").summary.loops, 0);
}

#[test]
fn a_macro_of_another_file_is_told_where_it_may_open_a_loop() {
    for (body, is_told) in [
        ("each(i, 3) if (p[i]) p[0] = i;", true),
        ("each(i, 3) return;", true),
        ("EACH(i, 3) p[i] = 0;", true),
        ("EACH(i, 3) { p[i] = 0; }", true),
        ("apply(i, 3) { p[i] = 0; }", false),
        ("for_each(i, 3) p[i] = 0;", true),
        ("apply(p, 3) p[i] = 0;", false),
        ("UNROLL(3) p[0] = 0;", false),
    ] {
        let told = rewritten(body).diagnostics.iter().any(|diagnostic| diagnostic.code == Code::UnknownLoopMacro);
        assert_eq!(told, is_told, "{body}");
    }
}
