//! One pass over a module: each function's cycles are found, placed and polled, and what was inserted is put into the text.

mod pause;

use super::accept::{Instructions, oldest};
use super::emit::edits::Edits;
use super::emit::{self, Cold, Fuel, Poll, Spelling, old};
use super::find::Cycles;
use super::find::calls::Activations;
use super::place::{self, Polled, Way, ends, poll_cycles, site_id};
use crate::common::rewrite::{Rewrite, refused, site_map};
use crate::common::waiver::{self, Remarked};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::options::Options;
use crate::position::LineIndex;
use crate::site::{Form, Kind, Site, Summary};
use cuinstr_ptx::{Flow, Function, Kind as Token, Module, Span, Statement};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) struct Pass<'a> {
    text: &'a str,
    lines: LineIndex,
    module: Module<'a>,
    /// Places of the module's files by their numbers.
    files: BTreeMap<u32, usize>,
    options: &'a Options,
    hash: u64,
    spelling: Spelling,
    /// Of each function whether leaving is not defined beside what runs with it; empty where it is in all of them.
    traps: Vec<bool>,
    edits: Edits,
    next: u32,
    sites: Vec<(u32, Site)>,
    diagnostics: Vec<Diagnostic>,
    summary: Summary,
    /// Whether there is a kernel that is not left alone.
    has_kernel: bool,
    /// Whether polls of some function call another one.
    calls: bool,
}

impl<'a> Pass<'a> {
    /// A pass over a module that is taken.
    pub(super) fn new(text: &'a str, module: Module<'a>, options: &'a Options, hash: u64) -> Self {
        let mut edits = Edits::default();
        let spelling = Spelling::new(&mut edits, options, Instructions::of(&module), module.version);
        Self {
            text,
            lines: LineIndex::new(text.as_bytes()),
            traps: Vec::new(),
            // Of two with a number the first counts.
            files: module.files.iter().enumerate().rev().map(|(index, (number, _))| (*number, index)).collect(),
            module,
            options,
            hash,
            spelling,
            edits,
            next: 0,
            sites: Vec::new(),
            diagnostics: Vec::new(),
            summary: Summary::default(),
            has_kernel: false,
            calls: false,
        }
    }
}

impl Pass<'_> {
    fn oldest(&self) -> Option<u32> {
        oldest(&self.module)
    }

    pub(super) fn run(mut self) -> Rewrite {
        // libdevice's own functions are slow paths that are seldom taken, with loops of few rounds.
        let pays = |function: &Function<'_>| !function.name.starts_with("__internal_") && place::alone::pays(self.text, function);
        let activations = Activations::new(self.text, &self.module, pays);
        let functions = std::mem::take(&mut self.module.functions);
        if RARE.iter().any(|word| memchr::memmem::find(self.text.as_bytes(), word.as_bytes()).is_some()) {
            let has = |function: &Function<'_>| function.statements.iter().any(|statement| leaving_is_undefined(self.text, *statement));
            self.traps = activations.together(&functions, has);
        }
        for (function, index) in functions.iter().zip(0..) {
            self.function(function, index, &activations);
        }
        self.module.functions = functions;
        self.callees_out_of_sight(&activations);
        self.finish()
    }

    fn function(&mut self, function: &Function<'_>, index: u32, activations: &Activations<'_>) {
        self.summary.functions += 1;
        self.summary.kernels += usize::from(function.is_kernel);
        if self.options.leave_alone.iter().any(|name| name == function.name) {
            return;
        }
        self.has_kernel |= function.is_kernel;
        let (way, has_own) = self.way(function, index);
        let poll = self.spelling.of(way.cold, way.has_products, 0);
        let cycles = Cycles::new(function);
        let Options { polls, .. } = *self.options;
        let module = place::Module { text: self.text, polls, hash: self.hash, spelling: self.spelling, activations };
        // A kernel that may call no function has neither end: its loops poll.
        let has_ends = function.is_kernel && way.cold == Cold::Call;
        if has_ends && !self.options.begin_by_polls {
            ends::begin(self.text, &cycles, &mut self.edits);
        }
        let mut polled = poll_cycles(&module, (&cycles, index), way, &mut self.edits, &mut self.next);
        self.calls |= polled.calls;
        for statement in &cycles.graph.lost {
            let at = function.statements[*statement as usize].start as usize;
            let diagnostic =
                Diagnostic::new(Code::UnsoundPtx, "it branches to what is not there").at(at..at + 1).in_function(function.name);
            self.diagnostics.push(diagnostic.help("give the text as the compiler wrote it"));
        }
        self.not_joined(function, &polled.not_joined);
        for site in &polled.sites {
            self.summary.loops += 1;
            match site.form {
                Form::None => self.summary.bounded += 1,
                _ => self.summary.polled += 1,
            }
            self.site(function, site.at, site.id, Kind::Loop, site.form, site.statement);
        }
        if self.options.pausable {
            self.launches_by_the_device(function);
        }
        let repeats = activations.polls_at_entry(index);
        let asks_first = has_ends && !polled.asks_at_entry() && activations.polls_below(index);
        // One that polls nowhere is soon over: it is left as it is.
        let polls = polled.fuel != Fuel::None || repeats || asks_first;
        if polls && way.traps && !has_own {
            self.traps_rather(function, function.at.start, "threads trap rather than leave in this function, as in others of its kernel");
        }
        let asks_last = has_ends && polls && self.exits(&cycles, polled.fuel);
        if asks_first {
            self.site(function, function.head.start, site_id(self.hash, function.head.start, way.traps), Kind::Entry, Form::Flag, 0);
        }
        if repeats {
            self.site(function, function.at.start, site_id(self.hash, function.at.start, way.traps), Kind::Recursion, Form::Each, 0);
        }
        self.limits(&cycles, &mut polled, repeats.then_some(poll), way.traps);
        if polls {
            // In front of all that uses them.
            polled.front.insert_str(0, Poll::declare(self.spelling.limits));
            let mut out = self.edits.at(function.body.end - 1);
            if !asks_last {
                ends::close(&cycles, &mut out);
            }
            poll.stops(&mut out);
        }
        let is_paused = self.options.pausable && function.is_kernel;
        let (decides, declines) = if is_paused { self.decision(function) } else { <(String, String)>::default() };
        if polled.front.is_empty() && decides.is_empty() {
            return;
        }
        let mut out = self.edits.at(function.body.start + 1);
        out.push(&polled.front);
        out.push(&decides);
        if repeats {
            poll.each(&mut out, site_id(self.hash, function.at.start, way.traps));
        }
        if asks_first {
            emit::ends::entry(&mut out, site_id(self.hash, function.head.start, way.traps), poll);
        }
        out.push(&declines);
        out.push(&polled.enters);
        out.push("\n");
    }

    /// Says which cycles with several ways in could not be joined.
    fn not_joined(&mut self, function: &Function<'_>, statements: &[u32]) {
        for statement in statements {
            let at = function.statements[*statement as usize].start as usize;
            let message = "a cycle has several ways in, which lie in different braces";
            let help = "move the labels that lead into it between the same braces, or compile by `ptxas -O0`";
            self.diagnostics.push(Diagnostic::new(Code::SeveralWaysIn, message).at(at..at + 1).in_function(function.name).help(help));
        }
    }

    /// What compiled-in limits need in a function; `poll` if it polls where it begins.
    fn limits(&mut self, cycles: &Cycles<'_, '_>, polled: &mut Polled, poll: Option<Poll>, traps: bool) {
        let (function, limits) = (cycles.function, self.spelling.limits);
        let polls = poll.is_some() || polled.fuel != Fuel::None;
        if limits.fuel.is_some() && polls && !function.is_kernel {
            let message = "fuel is not counted in a function that kernels call: it repeats, and can't see what its kernel has used";
            let help = "have the compiler inline it, or rewrite the source instead";
            let at = function.at.start as usize..function.at.end as usize;
            self.diagnostics.push(Diagnostic::new(Code::NotInPtx, message).at(at).in_function(function.name).help(help));
        }
        polled.begin(limits, poll.is_some());
        // An activation's time is known when it returns: where it begins, none has passed.
        let Some(poll) = poll.filter(|_| limits.any()) else { return };
        for (statement, number) in function.statements.iter().zip(0..) {
            if statement.flow == Flow::Return && cycles.loops.is_reached(cycles.graph.block_of(number)) {
                poll.each(&mut self.edits.at(statement.start), site_id(self.hash, function.at.start, traps));
            }
        }
    }

    /// Asks where a kernel's threads return.
    fn exits(&mut self, cycles: &Cycles<'_, '_>, fuel: Fuel) -> bool {
        let function = cycles.function;
        let id = site_id(self.hash, function.body.start, false);
        let asks = ends::ask(self.text, cycles, (self.spelling, fuel), id, &mut self.edits);
        if asks {
            self.site(function, function.body.start, id, Kind::Exit, Form::Flag, 0);
        }
        asks
    }

    fn site(&mut self, function: &Function<'_>, at: u32, id: u64, kind: Kind, form: Form, statement: u32) {
        self.summary.polls += usize::from(form != Form::None);
        let (line, column) = self.lines.position(at as usize);
        let place = function.location(statement).filter(|location| location.point.line != 0);
        let file = place.and_then(|location| self.files.get(&location.point.file));
        let file = file.and_then(|index| self.module.files.get(*index));
        let (file, line, column) = match (file, place) {
            (Some((_, file)), Some(location)) => (Some(self.options.relative(file)), location.point.line, location.point.column.max(1)),
            _ => (None, line, column),
        };
        let traps = (id & 1 == 1).then_some("threads trap here: leaving is not defined beside what this function uses");
        let why = if form == Form::None { Some("it ends soon: it has few iterations at most") } else { traps }.map(str::to_owned);
        let site = Site {
            id: format!("{:#018x}", id & !1),
            kind,
            function: function.name.to_owned(),
            file,
            line,
            column,
            form,
            why,
            waiver: None,
        };
        self.sites.push((at, site));
    }

    /// How threads of a function come to their end, by the instructions in it and in what runs with it; and whether it has such an instruction itself.
    fn way(&mut self, function: &Function<'_>, index: u32) -> (Way, bool) {
        let mut way = Way { cold: Cold::Call, traps: false, has_products: false };
        if !self.traps.get(index as usize).is_some_and(|traps| *traps) {
            return (way, false);
        }
        way.traps = true;
        let mut first = None;
        for statement in &function.statements {
            let opcode = statement.opcode(self.text);
            if opcode.starts_with("setmaxnreg") {
                way.cold = Cold::Inline;
            }
            way.has_products |= opcode.starts_with("wgmma");
            if first.is_none() && leaving_is_undefined(self.text, *statement) {
                first = Some(statement.opcode);
            }
        }
        if let Some(at) = first {
            self.traps_rather(function, at, "threads trap rather than leave in this function");
        }
        (way, first.is_some())
    }

    fn traps_rather(&mut self, function: &Function<'_>, at: u32, message: &str) {
        let at = at as usize;
        self.diagnostics.push(Diagnostic::new(Code::LeaveUndefined, message).at(at..at + 1).in_function(function.name));
    }

    fn callees_out_of_sight(&mut self, activations: &Activations<'_>) {
        for (name, at) in activations.outside() {
            let message = format!("`{name}` is not in this file: its loops are polled only if its own file is instrumented");
            self.diagnostics.push(Diagnostic::new(Code::CalleeElsewhere, message).at(*at as usize..*at as usize + 1));
        }
    }

    fn finish(mut self) -> Rewrite {
        self.sites.sort_by_key(|(at, _)| *at);
        let sites: Vec<Site> = self.sites.drain(..).map(|(_, site)| site).collect();
        let sites = site_map(self.options, sites, self.hash);
        let applied = waiver::apply(&Remarked::ptx(self.text), &self.lines, self.options, std::mem::take(&mut self.diagnostics));
        self.diagnostics = applied.diagnostics;
        if self.options.strict {
            for diagnostic in self.diagnostics.iter_mut().filter(|diagnostic| diagnostic.severity == Severity::Warning) {
                diagnostic.severity = Severity::Error;
            }
        }
        if self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            let summary = self.summary;
            return Rewrite { summary, used_waivers: applied.used, ..refused(self.options, sites.sites, self.diagnostics, self.hash) };
        }
        let has_decision = self.options.pausable && self.summary.kernels > 0;
        // Where no kernel needs a poll, a host still sees by the control block that they were looked at.
        if self.summary.polls > 0 || self.has_kernel {
            let pause = if has_decision { pause::device() } else { String::new() };
            let device =
                if self.summary.polls > 0 { emit::device(self.options.limits, Instructions::of(&self.module)) } else { String::new() };
            let device = old::spell(self.module.version, device);
            let front = self.front();
            let mut out = self.edits.at(front);
            let _ = write!(out, "\n{}{device}{pause}", emit::CONTROL);
            if self.calls {
                self.spelling.write_shared(&mut out);
            }
            emit::site_map(&mut out, &sites.to_json(), self.hash);
        }
        // The largest of what is kept comes now: what was read is no longer needed.
        drop(std::mem::take(&mut self.module));
        let (output, inserted) = self.edits.apply(self.text.as_bytes());
        Rewrite {
            output: Some(output),
            inserted,
            sites,
            diagnostics: self.diagnostics,
            summary: self.summary,
            used_waivers: applied.used,
            reasons: BTreeMap::new(),
            shared_bytes: None,
        }
    }

    /// Offset behind `.target`, and what follows it of further ones and `.address_size`: in front of all that a module declares.
    fn front(&self) -> u32 {
        let Some(target) = self.module.target else { return self.text.len() as u32 };
        let behind = Span { start: target.end, end: self.text.len() as u32 }.of(self.text);
        let words = cuinstr_ptx::tokens(behind).filter(|token| !matches!(token.kind, Token::Blank | Token::Comment));
        let mut end = target.end;
        let mut is_one = false;
        for token in words {
            match token.span.of(behind) {
                ".address_size" | ".target" => is_one = true,
                // What it says: words, and commas between them.
                word if is_one && !word.starts_with('.') => end = target.end + token.span.end,
                _ => break,
            }
        }
        end
    }
}

/// Words of which each instruction has one that [`leaving_is_undefined`] tells.
const RARE: [&str; 7] = ["wgmma", "tcgen05", "setmaxnreg", "async", "_tx", "mapa", "shared::cluster"];

/// Parts of instructions whose bytes come when they may, or go to peers: `clusterlaunchcontrol.try_cancel` completes bytes, too.
const UNDER_WAY: [&str; 4] = ["async.bulk", "expect_tx", "complete_tx", "shared::cluster"];

/// Whether CUDA leaves open what happens to others when a thread exits while this is under way.
fn leaving_is_undefined(text: &str, statement: Statement) -> bool {
    let opcode = statement.whole_opcode(text);
    match opcode.split('.').next().unwrap_or("") {
        "wgmma" | "tcgen05" | "setmaxnreg" | "mapa" => true,
        "st" | "red" if opcode.contains(".async") => true,
        _ => UNDER_WAY.iter().any(|part| opcode.contains(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::leaving_is_undefined;
    use crate::diagnostic::Code;
    use crate::options::Options;
    use crate::site::Kind;

    #[test]
    fn functions_are_counted_and_callees_out_of_sight_are_told() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func f;\n.func g() { ret; }\n.visible .entry k() { call f; call g; ret; }\n";
        let rewrite = crate::rewrite_ptx(text.as_bytes(), &Options { path: "a.ptx".to_owned(), ..Options::default() });
        assert_eq!((rewrite.summary.functions, rewrite.summary.kernels), (2, 1));
        let told = rewrite.diagnostics.iter().find(|diagnostic| diagnostic.code == Code::CalleeElsewhere);
        let at = text.find("call f").expect("it calls");
        assert_eq!(told.and_then(|told| told.primary.as_ref()).map(|label| label.span.clone()), Some(at..at + 1));
    }

    #[test]
    fn threads_trap_in_each_function_of_a_kernel_where_they_may_not_leave() {
        let [endless, copies] = ["$L: bra $L;", "cp.async.bulk.commit_group;"];
        let function = |name: &str, body: &str| format!(".func {name}() {{ {body} ret; }}\n");
        let kernel = |name: &str, body: &str| format!(".visible .entry {name}() {{ {body} bra $L; $L: bra $L; }}\n");
        let text = [
            ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func away();\n".to_owned(),
            function("copies", copies),
            function("above", "call copies; $L: bra $L;"),
            function("beside", endless),
            function("apart", endless),
            kernel("two", "call above; call beside; call away;"),
            kernel("other", "call apart; call away;"),
        ];
        let rewrite = crate::rewrite_ptx(text.concat().as_bytes(), &Options { path: "a.ptx".to_owned(), ..Options::default() });
        let loops = rewrite.sites.sites.iter().filter(|site| site.kind == Kind::Loop);
        let traps: Vec<(&str, bool)> = loops.map(|site| (site.function.as_str(), site.why.is_some())).collect();
        assert_eq!(traps, [("above", true), ("beside", true), ("apart", false), ("two", true), ("other", false)]);
        let told = rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::LeaveUndefined);
        let told: Vec<&str> = told.filter_map(|diagnostic| diagnostic.function.as_deref()).collect();
        assert_eq!(told, ["copies", "above", "beside", "two"]);
    }

    #[test]
    fn a_kernel_that_launches_a_graph_may_launch_itself() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 a, .param .b64 s);\n\
                    .visible .entry k() { { .param .b64 a; .param .b64 s; .param .b32 r; call.uni (r), cudaGraphLaunch, (a, s); } ret; }\n";
        let rewrite = crate::rewrite_ptx(text.as_bytes(), &Options { path: "a.ptx".to_owned(), ..Options::default() });
        assert!(rewrite.diagnostics.is_empty() && rewrite.sites.sites.iter().any(|site| site.kind == Kind::Recursion));
    }

    #[test]
    fn threads_trap_beside_what_others_wait_for() {
        let traps = [
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            "tcgen05.alloc.cta_group::1.sync.aligned.b32",
            "setmaxnreg.dec.sync.aligned.u32 40",
            "mapa.u64 %rd1, %rd2, 0",
            "cp.async.bulk.commit_group",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
            "mbarrier.arrive.expect_tx.b64",
            "mbarrier.complete_tx.b64",
            "st.async.b32",
            "red.async.add.u32",
            "ld.shared::cluster.u32",
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
            "multimem.cp.async.bulk.global.shared::cta.bulk_group",
        ];
        let leave = [
            "cp.async.ca.shared.global",
            "mbarrier.try_wait.b64",
            "barrier.cluster.arrive",
            "fence.proxy.async",
            "fence.acq_rel.cluster",
            "st.global.u32",
            "red.global.add.u32",
            "ld.shared::cta.u32",
            "add.u32",
        ];
        let tells = |opcode: &str| {
            let text = format!(".version 9.0\n.target sm_90\n.entry k() {{ {opcode} x; }}\n");
            let module = cuinstr_ptx::parse(&text);
            leaving_is_undefined(&text, module.functions[0].statements[0])
        };
        assert_eq!(traps.map(tells), [true; 13]);
        assert_eq!(leave.map(tells), [false; 9]);
    }
}
