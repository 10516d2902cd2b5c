//! Polls taken out of PTX that is there already. What nvcc makes of the kernels goes through the same in `compile`.

use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::removal::take_out;

/// `CUINSTR_POLLED` names a folder of PTX files, whose kernels have a poll in each iteration, to take all polls out of in turn.
#[test]
fn the_proof_and_a_walk_round_cycles_agree_on_each_poll_that_is_taken_out() {
    let Some(folder) = std::env::var_os("CUINSTR_POLLED") else {
        let taken = take_out(include_str!("../../data/ptx/clang.ptx"), "clang").expect("they agree");
        assert_eq!((taken.polls, taken.sites), (1, 0), "one poll, whose site is not told");
        return;
    };
    let files = std::fs::read_dir(&folder).expect("CUINSTR_POLLED is a folder").filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "ptx")).collect();
    files.sort();
    let (mut polls, mut sites, mut by_values, mut wrong) = (0, 0, 0, Vec::new());
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match take_out(&std::fs::read_to_string(path).expect("it can be read"), &name) {
            Ok(taken) => (polls, sites, by_values) = (polls + taken.polls, sites + taken.sites, by_values + taken.by_values),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    println!("{} files, {polls} polls, {sites} sites, {by_values} of these that values show not to be needed", files.len());
    assert!(wrong.is_empty() && polls > 0, "{wrong:#?}");
}

#[test]
fn a_kernel_that_may_launch_itself_by_a_graph_needs_its_poll() {
    let kernel = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 a, .param .b64 s);\n\
                  .visible .entry k() { { .param .b64 a, s; .param .b32 r; call.uni (r), cudaGraphLaunch, (a, s); } ret; }\n";
    let rewrite = rewrite_ptx(kernel.as_bytes(), &Options { path: "k.ptx".to_owned(), ..Options::default() });
    let output = String::from_utf8(rewrite.output.expect("it is rewritten")).expect("it is text");
    assert!(verify_ptx(&output).holds(), "{output}");
    assert!(!verify_ptx(&output.replace("setp.eq.b32 asked, flag, launch", "setp.eq.b32 asked, flag, 0")).holds());
}
