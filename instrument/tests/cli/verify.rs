//! `cuinstr verify`.

use crate::project::{Project, SPIN};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn kernel(body: &str) -> String {
    format!("{HEAD}.visible .entry k()\n{{\n\t.reg .pred %p<9>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;\n{body}\n}}\n.file\t1 \"k.cu\"\n")
}

/// A loop in line 2 of `k.cu` that nobody stops.
const SPINS: &str = "\t.loc\t1 2 5\n$L:\n\tbra $L;";
/// One that counts to ten.
const COUNTS: &str = "\tmov.u32 %r1, 0;\n$L:\n\tadd.s32 %r1, %r1, 1;\n\tsetp.ne.s32 %p1, %r1, 10;\n\t@%p1 bra $L;\n\tret;";

fn project() -> Project {
    Project::new(&[("k.cu", SPIN), ("spins.ptx", &kernel(SPINS)), ("counts.ptx", &kernel(COUNTS))])
}

#[test]
fn what_is_proved_exits_with_0_and_what_is_not_with_1() {
    let project = project();
    let proved = project.run("verify counts.ptx --list").exits(0).silent().stdout;
    assert!(proved.contains("loop in k: bounded (at most 10 rounds)"), "{proved}");
    let text = project.run("verify counts.ptx spins.ptx").exits(1).stdout;
    assert!(text.contains("--> k.cu:2:5") && text.contains("while (*p == 0)"), "{text}");
    let short = project.run("verify spins.ptx --format short").exits(1).stdout;
    assert!(short.starts_with("k.cu:2:5: error[CI050]: loop not polled") && short.lines().count() == 1, "{short}");
}

#[test]
fn json_and_sarif_can_be_read_by_programs() {
    let project = project();
    let json = project.run("verify counts.ptx spins.ptx --format json").exits(1).stdout;
    let holds: Vec<_> = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["holds"].clone()).collect();
    assert_eq!(holds, [true, false]);
    let sarif = project.run("verify spins.ptx --format sarif").exits(1).stdout;
    let log: serde_json::Value = serde_json::from_str(&sarif).expect("JSON");
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &log["version"]), (&"CI050".into(), &"2.1.0".into()));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 2);
}

#[test]
fn exceptions_accept_with_a_reason_and_must_not_be_stale() {
    let project = project();
    let entry = |what: &str| format!("[[allow]]\n{what}\nreason = \"the host always signals\"\n");
    for what in ["place = \"k.cu:2\"", "function = \"k\"", "verdict = \"not-polled\""] {
        project.write("allow.toml", entry(what).as_bytes());
        project.run("verify spins.ptx --allow allow.toml").exits(0);
    }
    project.write("allow.toml", entry("place = \"k.cu:3\"").as_bytes());
    project.run("verify spins.ptx --allow allow.toml").exits(1).says("CI056");
    for (list, why) in
        [("[[allow]]\nfunction = \"k\"\n", "reason"), ("[[allow]]\nreason = \"x\"\n", "names nothing"), ("x = 1\n", "unknown field")]
    {
        project.write("allow.toml", list.as_bytes());
        project.run("verify spins.ptx --allow allow.toml").exits(1).says(why);
    }
}

#[test]
fn what_can_not_be_read_is_no_proof() {
    let project = project();
    project.write("cut.ptx", &kernel(COUNTS).as_bytes()[..200]);
    project.write("empty.ptx", b"");
    assert!(project.run("verify cut.ptx").exits(1).stdout.contains("CI054"));
    assert!(project.run("verify empty.ptx k.cu").exits(1).stdout.contains("CI054"));
    project.run("verify nowhere.ptx").exits(3).says("CI040");
    project.run("verify").exits(2);
    // A file of that name can still be rewritten.
    project.write("verify", SPIN.as_bytes());
    project.run("./verify -o out.cu").exits(0);
    assert!(project.has("out.cu"));
}

#[test]
fn a_file_without_kernels_is_no_proof() {
    let project = project();
    project.write("functions.ptx", format!("{HEAD}.visible .func f()\n{{\n\tret;\n}}\n").as_bytes());
    assert!(project.run("verify functions.ptx").exits(1).stdout.contains("CI063"));
    project.write("zeros", &vec![0; 1 << 17]);
    project.run("verify zeros").exits(3).says("begins with zeros");
}
