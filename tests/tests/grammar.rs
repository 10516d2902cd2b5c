//! The constructs on which the grammar is known to stumble, each as one small file: every loop keyword in device code comes out as a site
//! or a diagnostic, whatever the parser makes of it.

use cuinstr::options::{DeviceMacro, Options, Space};
use cuinstr::site::Form;
use std::fmt::Write as _;

const CASES: &str = include_str!("../data/grammar_cases.txt");

/// The macros that the cases leave undefined, as a configuration would name them.
fn options() -> Options {
    let device = ["MY_DEVICE", "MY_LAMBDA_INLINE", "MY_INLINE"].map(|name| (name, Space::Device));
    let kernel = ["KERNEL"].map(|name| (name, Space::Kernel));
    let device_macros = device.into_iter().chain(kernel).map(|(name, space)| DeviceMacro { name: name.to_owned(), space }).collect();
    Options { path: "case.cu".to_owned(), device_macros, loop_macros: vec!["CUDA_KERNEL_LOOP".to_owned()], ..Options::default() }
}

fn cases() -> impl Iterator<Item = (&'static str, &'static str)> {
    CASES.split("=== ").filter(|case| !case.is_empty()).map(|case| case.split_once('\n').expect("a name and a text"))
}

#[test]
fn each_of_the_140_constructs_is_accounted_for() {
    let mut report = String::new();
    let mut count = 0;
    for (name, text) in cases() {
        count += 1;
        let rewrite = cuinstr::rewrite(text.as_bytes(), &options());
        let _ = writeln!(report, "{name}");
        for site in &rewrite.sites.sites {
            if matches!(site.kind, cuinstr::site::Kind::Entry | cuinstr::site::Kind::Exit) {
                continue;
            }
            let form = if site.form == Form::None { site.why.clone().unwrap_or_default() } else { format!("{:?}", site.form) };
            let _ = writeln!(report, "    {}:{} {:?} in {}: {form}", site.line, site.column, site.kind, site.function);
        }
        for diagnostic in &rewrite.diagnostics {
            let _ = writeln!(report, "    {} {}", diagnostic.code.id(), diagnostic.message);
        }
    }
    assert_eq!(count, 140);
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, { insta::assert_snapshot!("grammar", report) });
}

/// Constructs whose loop is host code, or no loop, to the tokens' eye; every other case must poll as many loops as it spells.
const WITHOUT_LOOP: &[(&str, &str)] =
    &[("__tile__", "tile code has no threads that could leave"), ("u8/raw strings", "the loop stands in a string")];

#[test]
fn each_loop_keyword_of_device_code_is_polled_or_reported() {
    for (name, text) in cases() {
        if WITHOUT_LOOP.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let rewrite = cuinstr::rewrite(text.as_bytes(), &options());
        let spelled =
            text.matches("for (").count() + text.matches("for(").count() + text.matches("while (").count() + text.matches("while(").count()
                - text.matches("R\"(for (").count();
        let loops = rewrite.sites.sites.iter().filter(|site| {
            use cuinstr::site::Kind;
            matches!(site.kind, Kind::For | Kind::RangeFor | Kind::While | Kind::Do)
        });
        let polled = loops.clone().filter(|site| site.form != Form::None).count();
        assert_eq!((loops.count(), polled), (spelled, spelled), "{name}: {text}\n{:#?}", rewrite.diagnostics);
        assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()), "{name}");
    }
}
