//! Random functions, simulated: no loop iterates more often than the proof says. `scripts/proof-long` makes ten million.

use cuinstr_differential::functions::{Functions, IN_ONE, compile};

fn functions() -> Functions {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let program = compile(folder.path()).expect("a host C++ compiler is needed");
    Functions::start(&program).expect("what was just compiled starts")
}

#[test]
fn no_simulated_function_iterates_more_often_than_is_claimed() {
    let mut functions = functions();
    let mut proved = 0;
    for seed in 1..4 {
        let simulated = functions.simulate(seed, |rounds| rounds).expect("the program answers");
        assert_eq!(simulated.wrong, None);
        proved += simulated.proved;
    }
    assert!(proved * 10 > 3 * IN_ONE, "{proved} loops are proved: too few to say anything");
}

#[test]
fn a_claim_of_half_the_iterations_is_noticed() {
    let mut functions = functions();
    for seed in 1..4 {
        let simulated = functions.simulate(seed, |rounds| rounds / 2).expect("the program answers");
        assert!(simulated.wrong.is_some_and(|wrong| wrong.contains("claimed")), "of module {seed}");
    }
}
