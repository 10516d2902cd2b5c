//! A module's functions in shares, which may be looked at by one thread each.
//!
//! What is found of a share depends on it alone. So it is the same however the work is done.

use crate::function::Function;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes of text that a share has, about.
const SHARE: usize = 1 << 17;

/// Has work done: calls the second for each number below the first, in any order and on any threads.
pub type Run<'r> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'r;

/// Does something with each share, and gives what came of them in order.
pub fn each_share<T: Send>(functions: &[Function<'_>], run: &Run<'_>, does: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let shares = shares(functions);
    let found: Vec<Mutex<Option<T>>> = shares.iter().map(|_| Mutex::new(None)).collect();
    run(shares.len(), &|nth| {
        let made = does(shares[nth].clone());
        *found[nth].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    });
    // What was left out is done here.
    let found = found.into_iter().zip(shares);
    found.map(|(made, share)| made.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| does(share))).collect()
}

/// Functions that follow each other in the text, up to [`SHARE`] bytes of it or the one function that is larger.
fn shares(functions: &[Function<'_>]) -> Vec<Range<usize>> {
    let mut shares: Vec<Range<usize>> = Vec::new();
    let mut bytes = SHARE;
    for (index, function) in functions.iter().enumerate() {
        if bytes >= SHARE {
            shares.push(index..index);
            bytes = 0;
        }
        bytes += (function.body.end - function.body.start) as usize;
        shares.last_mut().expect("one was pushed").end = index + 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_in_one_share_and_what_comes_of_them_is_in_order() {
        let comment = "// a comment\n".repeat(2_000);
        let functions: Vec<String> = (0..40).map(|nth| format!(".func f{nth}() {{ {comment} ret; }}\n")).collect();
        let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{}", functions.concat());
        let module = crate::parse(&text);
        let backwards: &Run<'_> = &|count, work| (1..count).rev().for_each(work);
        let found = each_share(&module.functions, backwards, |share| share);
        assert!(found.len() > 5, "{found:?}");
        assert_eq!(found.iter().cloned().flatten().collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
        assert!(each_share(&[], backwards, |share| share).is_empty());
    }
}
