//! scratch
use cuinstr_tests::{fixtures, simulated};
fn main() {
    let folder = std::env::args().nth(1).unwrap();
    let only = std::env::args().nth(2);
    for f in fixtures::all().unwrap() {
        if only.as_ref().is_some_and(|o| *o != f.name) { continue }
        let Ok(text) = std::fs::read_to_string(format!("{folder}/plain/{}.ptx", f.name)) else { continue };
        let one = simulated::run(&text, &f.header, 1, 20_000_000);
        let Ok(text) = std::fs::read_to_string(format!("{folder}/inst/{}.ptx", f.name)) else { println!("{} {:?}", f.name, one.map(|o| (o.outcome, o.steps))); continue };
        let two = simulated::run(&text, &f.header, 1, 20_000_000);
        let same = match (&one, &two) { (Ok(a), Ok(b)) => a.buffers == b.buffers, _ => false };
        println!("{} {same} {:?} {:?}", f.name, one.map(|o| (o.outcome, o.steps)), two.map(|o| (o.outcome, o.steps)));
    }
}
