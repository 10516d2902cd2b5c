//! Any bytes as PTX: no panic, the same report each time, and nothing that is cut short is proved.

#![no_main]

use cuinstr::verify::verify_ptx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let report = verify_ptx(&text);
    assert_eq!(report, verify_ptx(&text), "same text, another report");
    assert!(!report.holds() || text.contains(".version"), "proved without being PTX");
    // A body of its own behind it, with a loop that nobody stops, is seen whatever stands in front, or the text has a fault.
    let spin = format!("{text}\n.visible .entry fuzz_spin()\n{{\n$L_fuzz:\n\tbra $L_fuzz;\n}}\n");
    assert!(!verify_ptx(&spin).holds(), "a loop without an end is proved");
});
