//! Test binaries whose tests may find, while they run, that this machine lacks something: such a test shows as ignored, with the reason.
//!
//! `Cargo.toml` says `harness = false` of the binary. Its root says `#[macro_use] extern crate cuinstr_trial`, which makes `#[test]`
//! the one of this crate, and its `main` is [`main`].

pub use cuinstr_trial_attribute::test;
pub use inventory;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// A test of this binary.
pub struct Test {
    /// With the modules that it stands in, the binary's own first.
    pub name: &'static str,
    /// The test.
    pub run: fn(),
}

inventory::collect!(Test);

/// What a test unwinds with that can't run here.
struct Ignored(String);

/// Ends the test, which shows as ignored.
///
/// # Panics
/// As its way out.
pub fn ignore(reason: impl Into<String>) -> ! {
    resume_unwind(Box::new(Ignored(reason.into())))
}

/// What is there. Without it the test ends here, and shows as ignored.
///
/// # Panics
/// If `CUINSTR_REQUIRE` names it.
pub fn or_ignore<T>(what: &str, found: Result<T, String>) -> T {
    found.unwrap_or_else(|reason| {
        assert!(!required(what), "CUINSTR_REQUIRE names {what}, but {reason}");
        ignore(reason)
    })
}

/// Whether `CUINSTR_REQUIRE` (a list such as `nvcc,gpu`) names what is missing, so that its absence is a failure.
#[must_use]
pub fn required(what: &str) -> bool {
    listed(&std::env::var("CUINSTR_REQUIRE").unwrap_or_default(), what)
}

fn listed(list: &str, what: &str) -> bool {
    list.split(',').any(|item| item.trim() == what)
}

/// A test by a name of its own. It may call [`ignore`].
pub fn trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || ended(test))
}

fn ended(test: impl FnOnce() -> Result<(), String>) -> Result<Completion, Failed> {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(done) => done.map(|()| Completion::Completed).map_err(Failed::from),
        Err(why) => match why.downcast::<Ignored>() {
            Ok(why) => Ok(Completion::ignored_with(why.0)),
            Err(why) => resume_unwind(why),
        },
    }
}

/// Runs the tests of this binary.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn main() -> ExitCode {
    let mut tests: Vec<&Test> = inventory::iter::<Test>.into_iter().collect();
    // Without `macro_use`, Rust's own `#[test]` removes them all.
    assert!(!tests.is_empty(), "no test is marked with this crate's `#[test]`");
    tests.sort_by_key(|test| test.name);
    let trials = tests.into_iter().map(|test| {
        let name = test.name.split_once("::").map_or(test.name, |(_, name)| name);
        trial(name, || {
            (test.run)();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

#[cfg(test)]
mod tests {
    use super::{Completion, catch_unwind, ended, ignore, listed, or_ignore};

    #[test]
    fn the_list_is_separated_by_commas() {
        assert!(listed("nvcc, gpu", "gpu") && listed("nvcc", "nvcc"));
        assert!(!listed("", "gpu") && !listed("gpus", "gpu"));
    }

    #[test]
    fn only_what_ends_by_ignore_is_ignored() {
        let is_ignored = |test: fn() -> Result<(), String>| {
            ended(test).is_ok_and(|how| matches!(how, Completion::Ignored { reason: Some(why) } if why == "there is none"))
        };
        assert!(is_ignored(|| ignore("there is none")));
        assert!(is_ignored(|| or_ignore("what no list names", Err("there is none".into()))));
        assert!(ended(|| Ok(())).is_ok_and(|how| matches!(how, Completion::Completed)));
        assert!(ended(|| Err("wrong".into())).is_err());
        assert!(catch_unwind(|| ended(|| panic!("wrong"))).is_err());
    }
}
