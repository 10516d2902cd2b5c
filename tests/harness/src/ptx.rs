//! What tests read from PTX: variables with their values, and where control can come round again. Shares nothing with the rewriter.

use std::collections::{BTreeMap, BTreeSet};

/// A module-scope variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// What stands in front of its name, such as `.weak .global .align 8 .u64`.
    pub declaration: String,
    /// Its name.
    pub name: String,
    /// Its initial values, as they are spelled.
    pub values: Vec<String>,
}

impl Variable {
    /// The values as numbers.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<u64>> {
        self.values.iter().map(|value| value.parse().ok()).collect()
    }

    /// The values as bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.values.iter().map(|value| value.parse().ok()).collect()
    }
}

/// Module-scope variables in order.
#[must_use]
pub fn variables(ptx: &str) -> Vec<Variable> {
    let is_variable =
        |line: &&str| line.starts_with('.') && [" .b", " .u", " .s", " .f"].iter().any(|ty| line.contains(ty)) && line.ends_with(';');
    ptx.lines().map(str::trim_end).filter(is_variable).filter_map(variable).collect()
}

fn variable(line: &str) -> Option<Variable> {
    let (head, values) = match line.trim_end_matches(';').split_once(" = ") {
        Some((head, values)) => (head, values.trim_matches(['{', '}']).split(',').map(|value| value.trim().to_owned()).collect()),
        None => (line.trim_end_matches(';'), Vec::new()),
    };
    let (declaration, name) = head.rsplit_once(' ')?;
    let name = name.split('[').next()?;
    Some(Variable { declaration: declaration.to_owned(), name: name.to_owned(), values })
}

/// Paths of `.file` by their number.
#[must_use]
pub fn files(ptx: &str) -> BTreeMap<u32, String> {
    let file = |line: &str| {
        let (number, path) = line.trim().strip_prefix(".file")?.trim().split_once(' ')?;
        Some((number.parse().ok()?, path.split('"').nth(1)?.to_owned()))
    };
    ptx.lines().filter_map(file).collect()
}

/// A set of statements each of which can come round to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// Functions that it passes through; several if they call each other.
    pub functions: BTreeSet<String>,
    /// Places in sources by `.loc`: number of the file, and line. Empty without `-lineinfo`.
    pub places: BTreeSet<(u32, u32)>,
}

/// Every cycle of control flow and of calls; calls through pointers are not followed.
#[must_use]
pub fn cycles(ptx: &str) -> Vec<Cycle> {
    let module = Module::parse(ptx);
    let edges = module.edges();
    let mut cycles = Vec::new();
    for component in components(&edges) {
        let repeats = component.len() > 1 || edges[component[0]].contains(&component[0]);
        if repeats {
            let functions = component.iter().map(|at| module.functions[module.statements[*at].function].clone()).collect();
            let places = component.iter().filter_map(|at| module.statements[*at].place).collect();
            cycles.push(Cycle { functions, places });
        }
    }
    cycles
}

/// For each statement that holds a text, in order: whether a cycle passes it that passes no other of them. Cycles are walked one by one from
/// the statement on; how far a loop counts is not asked, but what comes back to one of the labels `counted` is left out.
#[must_use]
pub fn guards_alone(ptx: &str, guard: &str, counted: &[String]) -> Vec<bool> {
    let (module, guards) = Module::with_guards(ptx, guard);
    let edges = module.edges_but_back_to(counted);
    (0..guards.len()).map(|number| module.has_cycle_of(&edges, &guards, &[number])).collect()
}

/// The same for all statements of that text together that `group` names by their numbers: whether a cycle passes one of these, and none of
/// the others.
#[must_use]
pub fn guards_alone_together(ptx: &str, guard: &str, counted: &[String], group: &[usize]) -> bool {
    let (module, guards) = Module::with_guards(ptx, guard);
    module.has_cycle_of(&module.edges_but_back_to(counted), &guards, group)
}

/// For each statement that holds a text, in order: a stop on a way on from it gets a number of more than 32 bits,
/// before another strong load of 32 bits; none if there are several, or no such number. It may have been moved through
/// registers that nothing else is written to, as compilers do for a debugger.
#[must_use]
pub fn sites_of_guards(ptx: &str, guard: &str) -> Vec<Option<i64>> {
    let (module, guards) = Module::with_guards(ptx, guard);
    let (edges, written) = (module.edges(), module.written());
    let site = |start: usize| {
        let mut found: BTreeSet<i64> = BTreeSet::new();
        let mut seen = vec![false; edges.len()];
        let mut work = edges[start].clone();
        while let Some(at) = work.pop() {
            let text = &module.statements[at].text;
            let is_next = text.contains("ld.relaxed") && text.contains(".u32");
            if is_next || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let handed = text.trim_start().strip_prefix("st.param.b64").and_then(|rest| {
                let is_call = |statement: &&Statement| statement.text.trim_start().starts_with("call");
                let until = at + module.statements[at..].iter().position(|statement| is_call(&statement))?;
                // A barrier's site is handed over with no reason.
                let is_idle = |statement: &Statement| statement.text.contains("[why]") && statement.text.trim_end().ends_with(", 0");
                let stops = module.statements[until].text.contains("__cuinstr_stop") && !module.statements[at..until].iter().any(is_idle);
                let operand = stops.then(|| rest.rsplit(',').next().map(str::trim))??;
                Module::number(&written, module.statements[at].function, operand)
            });
            match handed.filter(|number| number.unsigned_abs() > u64::from(u32::MAX)) {
                Some(number) => _ = found.insert(number),
                None => work.extend(&edges[at]),
            }
        }
        found.first().copied().filter(|_| found.len() == 1)
    };
    guards.iter().map(|at| site(*at)).collect()
}

/// Statements that control comes to from one on, without passing one that stops it; of those that it comes to itself only where it comes back.
fn reached(edges: &[Vec<usize>], start: usize, stops: &BTreeSet<usize>) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut work = edges[start].clone();
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut seen[at], true) && !stops.contains(&at) {
            work.extend(&edges[at]);
        }
    }
    seen
}

#[derive(Debug, Default)]
struct Module {
    functions: Vec<String>,
    /// First statement of each function.
    entries: Vec<usize>,
    statements: Vec<Statement>,
    /// Labels by the scope that they stand in.
    labels: BTreeMap<(usize, String), usize>,
    /// The scope around each scope; a function's is its own.
    outer: Vec<usize>,
}

#[derive(Debug)]
struct Statement {
    text: String,
    function: usize,
    scope: usize,
    place: Option<(u32, u32)>,
}

impl Module {
    /// The module, and the statements that hold a text.
    fn with_guards(ptx: &str, guard: &str) -> (Self, Vec<usize>) {
        let module = Self::parse(ptx);
        let guards = (0..module.statements.len()).filter(|at| module.statements[*at].text.contains(guard)).collect();
        (module, guards)
    }

    fn parse(ptx: &str) -> Self {
        let mut module = Self::default();
        let text = flow_only(ptx);
        let (mut piece, mut scope, mut depth, mut place) = (String::new(), 0, 0_usize, None);
        let mut rest = text.chars().peekable();
        while let Some(next) = rest.next() {
            match next {
                '{' if depth == 0 => {
                    if let Some(name) = function_name(&piece) {
                        module.functions.push(name);
                        module.entries.push(module.statements.len());
                        scope = module.outer.len();
                        module.outer.push(scope);
                        (depth, place) = (1, None);
                        piece.clear();
                    } else {
                        piece.push(next);
                    }
                }
                '{' if piece.trim().is_empty() => {
                    module.outer.push(scope);
                    scope = module.outer.len() - 1;
                    depth += 1;
                }
                '}' if depth > 0 && piece.trim().is_empty() => {
                    depth -= 1;
                    if depth == 0 {
                        // What stands behind the last label of a function.
                        module.push("ret", scope, place);
                    }
                    scope = module.outer[scope];
                    piece.clear();
                }
                ';' => {
                    let text = piece.trim();
                    if let Some(words) = text.strip_prefix(".loc") {
                        let mut words = words.split_whitespace().map(|word| word.trim_end_matches(',').parse().ok());
                        place = words.next().flatten().zip(words.next().flatten());
                    } else if depth > 0 && !text.is_empty() {
                        module.push(text, scope, place);
                    }
                    piece.clear();
                }
                ':' if depth > 0 && is_name(piece.trim()) && rest.peek() != Some(&':') => {
                    module.labels.insert((scope, piece.trim().to_owned()), module.statements.len());
                    piece.clear();
                }
                _ => piece.push(next),
            }
        }
        module
    }

    fn push(&mut self, text: &str, scope: usize, place: Option<(u32, u32)>) {
        self.statements.push(Statement { text: text.to_owned(), function: self.functions.len() - 1, scope, place });
    }

    /// Where the label leads, seen from a scope.
    fn label(&self, mut scope: usize, name: &str) -> Option<usize> {
        loop {
            if let Some(&at) = self.labels.get(&(scope, name.to_owned())) {
                return Some(at);
            }
            if self.outer[scope] == scope {
                return None;
            }
            scope = self.outer[scope];
        }
    }

    /// Whether a cycle passes some of these guards, and none of the others. A call goes on behind itself if its callee may return without
    /// passing one of the others; and it passes what the callee may pass on its way.
    fn has_cycle_of(&self, edges: &[Vec<usize>], guards: &[usize], group: &[usize]) -> bool {
        let stops: BTreeSet<usize> = guards.iter().enumerate().filter(|(number, _)| !group.contains(number)).map(|(_, at)| *at).collect();
        let mut edges = edges.to_vec();
        let calls: Vec<(usize, usize)> = (0..edges.len()).filter_map(|at| Some((at, self.callee(at)?))).collect();
        let returns = |at: usize| self.statements[at].text.split(|next: char| !next.is_ascii_alphanumeric()).any(|word| word == "ret");
        // What may return quietly, and what may pass a guard of the group and return, are found out round by round.
        let behind: Vec<Vec<usize>> = calls.iter().map(|(at, _)| edges[*at].iter().copied().filter(|to| *to == at + 1).collect()).collect();
        for (at, _) in &calls {
            edges[*at].retain(|to| *to != at + 1);
        }
        // Ends of functions that no other guard stands at.
        let rets: Vec<usize> = (0..edges.len()).filter(|at| returns(*at) && !stops.contains(at)).collect();
        let ends = |from: usize, edges: &[Vec<usize>]| {
            let (function, seen) = (self.statements[from].function, reached(edges, from, &stops));
            rets.iter().any(|at| self.statements[*at].function == function && (seen[*at] || *at == from))
        };
        let mut quiet: BTreeSet<usize> = BTreeSet::new();
        loop {
            let new: Vec<usize> = (0..self.entries.len())
                .filter(|function| !quiet.contains(function) && calls.iter().any(|(_, callee)| callee == function))
                .filter(|function| self.entries[*function] < edges.len() && ends(self.entries[*function], &edges))
                .collect();
            if new.is_empty() {
                break;
            }
            for ((at, callee), behind) in calls.iter().zip(&behind) {
                if new.contains(callee) {
                    edges[*at].extend(behind);
                }
            }
            quiet.extend(new);
        }
        let mut carriers: BTreeSet<usize> = group.iter().map(|number| guards[*number]).collect();
        loop {
            let passes = |function: usize| {
                let entry = self.entries[function];
                let from_entry = reached(&edges, entry, &stops);
                carriers
                    .iter()
                    .any(|at| self.statements[*at].function == function && (*at == entry || from_entry[*at]) && ends(*at, &edges))
            };
            let new: Vec<usize> =
                calls.iter().filter(|(at, callee)| !carriers.contains(at) && passes(*callee)).map(|(at, _)| *at).collect();
            if new.is_empty() {
                break;
            }
            carriers.extend(new);
        }
        carriers.iter().any(|at| reached(&edges, *at, &stops)[*at])
    }

    /// The function of this module that a statement calls.
    fn callee(&self, at: usize) -> Option<usize> {
        let text = self.statements[at].text.as_str();
        let mut words = text.split(|byte: char| byte.is_whitespace() || matches!(byte, ',' | '(' | ')')).filter(|word| !word.is_empty());
        let is_call = |word: &str| word == "call" || word.starts_with("call.");
        words.find(|word| is_call(word))?;
        words.find_map(|word| self.functions.iter().position(|name| name == word))
    }

    /// Statements by function and by the register, or each of the registers in braces, that they name first.
    fn written(&self) -> BTreeMap<(usize, &str), Vec<&str>> {
        let mut written: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for statement in &self.statements {
            let text = statement.text.as_str();
            let unguarded =
                if text.starts_with('@') { text.split_once(char::is_whitespace).map_or("", |(_, text)| text.trim()) } else { text };
            let operands = unguarded.split_once(char::is_whitespace).map_or("", |(_, operands)| operands.trim());
            let first = match operands.strip_prefix('{') {
                Some(vector) => vector.split('}').next().unwrap_or(""),
                None => operands.split(',').next().unwrap_or(""),
            };
            for register in first.split(',') {
                written.entry((statement.function, register.trim())).or_default().push(text);
            }
        }
        written
    }

    /// The number that an operand stands for: itself, or what its register is set to by the only statement that writes it, a move or a mask.
    fn number(written: &BTreeMap<(usize, &str), Vec<&str>>, function: usize, operand: &str) -> Option<i64> {
        let (mut operand, mut mask) = (operand, -1);
        // Chains of moves are short; a register may be moved to itself.
        for _ in 0..16 {
            if let Ok(number) = operand.parse::<i64>() {
                return Some(number & mask);
            }
            let [text] = written.get(&(function, operand))?.as_slice() else { return None };
            let (operation, operands) = text.split_once(char::is_whitespace)?;
            let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
            match (operation, operands.as_slice()) {
                ("mov.b64" | "mov.u64", [_, from]) => operand = *from,
                ("and.b64", [_, from, kept]) => (operand, mask) = (*from, mask & kept.parse::<i64>().ok()?),
                _ => return None,
            }
        }
        None
    }

    /// The edges without those that lead back to one of these labels: from where control only comes by way of it.
    fn edges_but_back_to(&self, counted: &[String]) -> Vec<Vec<usize>> {
        let heads: BTreeSet<usize> = self.labels.iter().filter(|((_, name), _)| counted.contains(name)).map(|(_, at)| *at).collect();
        let all = self.edges();
        let mut edges = all.clone();
        for head in heads {
            let mut past = vec![false; all.len()];
            let mut work: Vec<usize> = self.entries.iter().copied().filter(|entry| *entry != head).collect();
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut past[at], true) {
                    work.extend(all[at].iter().filter(|to| **to != head));
                }
            }
            for (targets, _) in edges.iter_mut().zip(past).filter(|(_, past)| !past) {
                targets.retain(|to| *to != head);
            }
        }
        edges
    }

    fn edges(&self) -> Vec<Vec<usize>> {
        let names: BTreeMap<&str, usize> = self.functions.iter().zip(&self.entries).map(|(name, entry)| (name.as_str(), *entry)).collect();
        let follow = |at: usize, statement: &Statement| {
            let text = statement.text.as_str();
            let (guarded, text) = match text.strip_prefix('@') {
                Some(rest) => (true, rest.split_once(char::is_whitespace).map_or("", |(_, text)| text.trim())),
                None => (false, text),
            };
            let words: Vec<&str> =
                text.split(|byte: char| byte.is_whitespace() || matches!(byte, ',' | '(' | ')')).filter(|word| !word.is_empty()).collect();
            let operation = words.first().and_then(|word| word.split('.').next()).unwrap_or("");
            let last = words.last().copied().unwrap_or("");
            let mut targets = Vec::new();
            match operation {
                "bra" => targets.extend(self.label(statement.scope, last)),
                "brx" => {
                    let table = self.label(statement.scope, last).and_then(|at| self.statements[at].text.strip_prefix(".branchtargets"));
                    targets.extend(
                        table.into_iter().flat_map(|table| table.split(',')).filter_map(|name| self.label(statement.scope, name.trim())),
                    );
                }
                "call" => targets.extend(words.iter().find_map(|word| names.get(word))),
                _ => {}
            }
            let ends = matches!(operation, "bra" | "brx" | "ret" | "exit" | "trap") && !guarded;
            let goes_on = self.statements.get(at + 1).is_some_and(|next| next.function == statement.function);
            if !ends && goes_on {
                targets.push(at + 1);
            }
            targets
        };
        self.statements.iter().enumerate().map(|(at, statement)| follow(at, statement)).collect()
    }
}

/// The text without comments, debug sections and directives that no semicolon ends; `.loc` is given one.
fn flow_only(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let line = line.trim();
        if line.starts_with(".section") {
            break;
        }
        if [".file", ".version", ".target", ".address_size"].iter().any(|word| line.starts_with(word)) {
            continue;
        }
        let line = line.split_once("//").map_or(line, |(code, _)| code);
        text.push_str(line);
        text.push_str(if line.starts_with(".loc") { ";\n" } else { "\n" });
    }
    while let Some(from) = text.find("/*") {
        let to = text[from..].find("*/").map_or(text.len(), |length| from + length + 2);
        text.replace_range(from..to, " ");
    }
    text
}

/// The name in `.visible .entry NAME(…)` or `.func (.param .b32 retval) NAME(…)`.
fn function_name(head: &str) -> Option<String> {
    let behind = [".entry", ".func"].iter().find_map(|word| head.rfind(word).map(|at| &head[at + word.len()..]))?;
    let mut behind = behind.trim_start();
    if behind.starts_with('(') {
        behind = behind.split_once(')')?.1.trim_start();
    }
    let name: String = behind.chars().take_while(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '$' | '%')).collect();
    (!name.is_empty()).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '$' | '%'))
}

/// Strongly connected components (Kosaraju), without recursion.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for to in targets {
            back[*to].push(from);
        }
    }
    let (mut seen, mut order) = (vec![false; edges.len()], Vec::with_capacity(edges.len()));
    for root in 0..edges.len() {
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 && std::mem::replace(&mut seen[node], true) {
                continue;
            }
            match edges[node].get(edge) {
                Some(&next) => work.extend([(node, edge + 1), (next, 0)]),
                None => order.push(node),
            }
        }
    }
    let (mut placed, mut found) = (vec![false; edges.len()], Vec::new());
    for &root in order.iter().rev() {
        let (mut work, mut component) = (vec![root], Vec::new());
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut placed[node], true) {
                component.push(node);
                work.extend(&back[node]);
            }
        }
        if !component.is_empty() {
            found.push(component);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> String {
        format!(
            ".version 9.0\n.target sm_90\n.visible .entry k(\n\t.param .u64 p\n)\n.maxntid 32, 1, 1\n{{\n\t.reg .b32 %r<4>;\n{text}\n}}\n"
        )
    }

    #[test]
    fn a_branch_back_is_a_cycle_and_a_branch_ahead_is_none() {
        let back = cycles(&body("\t.loc 1 7 3\n$L1:\n\tadd.u32 %r1, %r1, 1; // more\n\t.loc 1 8 3\n\t@%p1 bra $L1;\n\tret;"));
        assert_eq!(back.len(), 1);
        assert_eq!(back[0].places, BTreeSet::from([(1, 7), (1, 8)]));
        assert_eq!(back[0].functions, BTreeSet::from(["k".to_owned()]));
        assert_eq!(cycles(&body("\t@%p1 bra $L1;\n\tld.v2.u32 {%r1, %r2}, [%rd1];\n$L1:\n\tret;")), []);
        assert_eq!(cycles(&body("\tbra.uni $L2;\n$L1:\n\tret;\n$L2:\n\tbra.uni $L1;")), []);
    }

    #[test]
    fn labels_of_assembly_belong_to_their_braces() {
        let once = "\t{\n\tagain:\n\tmbarrier.try_wait.shared::cta.b64 p, [%0];\n\t@p bra.uni done;\n\tnop;\n\tdone:\n\t}\n";
        assert_eq!(cycles(&body(&once.repeat(2))), []);
        assert_eq!(cycles(&body(&once.replace("done;", "again;").repeat(2))).len(), 2);
    }

    #[test]
    fn tables_of_branches_and_calls_are_followed() {
        let table = "$L1:\n\tadd.u32 %r1, %r1, 1;\n$L_brx: .branchtargets\n\t$L1,\n\t$L2;\n\tbrx.idx %r1, $L_brx;\n$L2:\n\tret;";
        assert_eq!(cycles(&body(table)).len(), 1);
        let calls = |callee: &str| {
            format!(
                ".func (.param .b32 func_retval0) f(\n\t.param .b32 x\n)\n{{\n\t{{ // callseq 0\n\tcall.uni (retval0),\n\t{callee},\n\t(param0);\n\t}}\n\tret;\n}}\n"
            )
        };
        assert_eq!(cycles(&calls("f")).len(), 1);
        assert_eq!(cycles(&calls("g")), []);
    }

    #[test]
    fn a_poll_s_site_is_told_through_moves_and_masks_but_not_where_a_register_is_written_twice() {
        let site = -5_403_417_830_986_564_938_i64;
        let poll = "\tld.relaxed.sys.u32 %r1, [%rd9];\n\t@%p1 bra $L1;\n\tst.param.b64 [param0+0], %rd3;\n\tcall.uni __cuinstr_stop, (param0);\n$L1:\n\tret;";
        let sites = |moved: &str| sites_of_guards(&body(&format!("{moved}{poll}")), "ld.relaxed.sys.u32");
        let chain = format!("\tmov.u64 %rd1, {};\n\tmov.b64 %rd2, %rd1;\n\tand.b64 %rd3, %rd2, -2;\n", site + 1);
        assert_eq!(sites(&chain), [Some(site)]);
        assert_eq!(sites(&format!("{chain}\t@%p2 mov.b64 %rd2, %rd8;\n")), [None]);
        assert_eq!(sites("\tmov.b64 %rd2, %rd3;\n\tmov.b64 %rd3, %rd2;\n"), [None]);
        assert_eq!(sites("\tadd.s64 %rd3, %rd1, 7;\n"), [None]);
        // What a barrier hands over on the way is no second one.
        let barrier =
            format!("$L1:\n\tst.param.b64 [site], {};\n\tst.param.b32 [why], 0;\n\tcall __cuinstr_stop, (site, why);\n\tret;", site + 7);
        let text = body(&format!("{chain}{}", poll.replace("$L1:\n\tret;", &barrier)));
        assert_eq!(sites_of_guards(&text, "ld.relaxed.sys.u32"), [Some(site)]);
    }

    #[test]
    fn variables_have_their_values() {
        let ptx = ".weak .global .align 8 .u64 c[3] = {1, generic(f), 7};\n.global .align 1 .b8 s[2] = {67, 0};\n.global .u32 f;\n";
        let found = variables(ptx);
        assert_eq!(found.iter().map(|variable| variable.name.as_str()).collect::<Vec<_>>(), ["c", "s", "f"]);
        assert_eq!((found[0].numbers(), found[1].bytes()), (None, Some(vec![67, 0])));
        assert_eq!(found[0].declaration, ".weak .global .align 8 .u64");
        assert_eq!(files("\t.file\t1 \"/src/a b.cu\"\n"), BTreeMap::from([(1, "/src/a b.cu".to_owned())]));
    }
}
