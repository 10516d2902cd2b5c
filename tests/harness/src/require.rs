//! What a test does on a machine that lacks something: it is skipped with the reason, or fails where the machine should have it.

/// Whether `CUINSTR_REQUIRE` (a list such as `nvcc,gpu`) names what is missing, so that its absence is a failure.
#[must_use]
pub fn required(what: &str) -> bool {
    listed(&std::env::var("CUINSTR_REQUIRE").unwrap_or_default(), what)
}

/// What is there, or nothing after a line that says why the test is skipped.
///
/// # Panics
/// If `CUINSTR_REQUIRE` names it.
#[must_use]
pub fn or_skip<T>(what: &str, found: Result<T, String>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(reason) => {
            assert!(!required(what), "CUINSTR_REQUIRE names {what}, but {reason}");
            tell(&reason);
            None
        }
    }
}

/// Tells of a test that could not run, as `scripts/test` lists it at the end: a line in the file that `CUINSTR_SKIPPED` names.
pub fn tell(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(path) = std::env::var_os("CUINSTR_SKIPPED") else { return };
    let line = format!("{}: {reason}\n", std::thread::current().name().unwrap_or("a test"));
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
}

fn listed(list: &str, what: &str) -> bool {
    list.split(',').any(|item| item.trim() == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_separated_by_commas() {
        assert!(listed("nvcc, gpu", "gpu") && listed("nvcc", "nvcc"));
        assert!(!listed("", "gpu") && !listed("gpus", "gpu"));
    }
}
