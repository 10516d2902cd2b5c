//! Variables of the environment that begin with `CUINSTR_`, and what reads each.

use crate::nearest::nearest;

/// How our variables begin.
const PREFIX: &str = "CUINSTR_";

/// Variables that a user sets, each with what reads it.
pub const USERS: &[(&str, &str)] = &[
    ("CUINSTR_FLAGS", "calls of `cuinstr nvcc` and `cuinstr ptxas`"),
    ("CUINSTR_PTXAS", "calls of `cuinstr ptxas`"),
    ("CUINSTR_TIMEOUT", "programs that `cuinstr nvcc` built"),
    ("CUINSTR_FUEL", "programs that `cuinstr nvcc` built"),
    ("CUINSTR_ON_STOP", "programs that `cuinstr nvcc` built"),
    ("CUINSTR_REPORT", "programs that `cuinstr nvcc` built"),
    ("CUINSTR_PAUSABLE", "programs that `cuinstr nvcc` built"),
    ("CUINSTR_LEASES", "`cuinstr gpus`"),
];

/// Variables by which processes of ours talk to each other, and those of our own builds and tests.
const OWN: &[&str] = &[
    "CUINSTR_CHECKPOINT",
    "CUINSTR_EVALUATE",
    "CUINSTR_GRAPHS",
    "CUINSTR_GRAPHS_SEED",
    "CUINSTR_HOST_MACHINE",
    "CUINSTR_INTERPOSER",
    "CUINSTR_MUTANTS",
    "CUINSTR_POLLED",
    "CUINSTR_PROBE_CHILD",
    "CUINSTR_PTX_PROGRAMS",
    "CUINSTR_REQUIRE",
    "CUINSTR_RUN",
    "CUINSTR_SEEDS",
    "CUINSTR_SESSION",
    "CUINSTR_SETTLES",
    "CUINSTR_SHUT_IN",
    "CUINSTR_SNAPSHOT",
    "CUINSTR_SOURCE",
    "CUINSTR_SWEEP",
    "CUINSTR_WORKER",
    "CUINSTR_WRITE_ABI",
];

/// A line for each of these variables that nothing reads; the nearest one that something does read is named.
#[must_use]
pub fn unread<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_known = |name: &str| USERS.iter().any(|(known, _)| *known == name) || OWN.contains(&name) || name.starts_with("CUINSTR_TEST_");
    let unknown = names.filter(|name| name.starts_with(PREFIX) && !is_known(name));
    unknown
        .map(|name| {
            let name = crate::render::one_line(name);
            match nearest(name.trim_start_matches(PREFIX), USERS.iter().map(|(known, _)| known.trim_start_matches(PREFIX))) {
                Some(near) => format!("warning: nothing reads the variable {name}; did you mean {PREFIX}{near}?"),
                None => format!("warning: nothing reads the variable {name}; docs/PROJECTS.md lists those that are read"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::unread;

    #[test]
    fn a_mistyped_variable_is_told_with_the_nearest_one() {
        let told = unread(["CUINSTR_TIMEOT", "CUINSTR_TIMEOUT", "HOME", "CUINSTR_WORKER", "CUINSTR_COLOURS"].into_iter());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].ends_with("did you mean CUINSTR_TIMEOUT?"), "{told:?}");
        assert!(told[1].contains("CUINSTR_COLOURS; docs/"), "{told:?}");
    }
}
