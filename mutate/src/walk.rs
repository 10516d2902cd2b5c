//! A walk through the device functions of a source, and the changes that the operators make on it. The only module that names tree-sitter.

use crate::Mutant;
use crate::operator::{self, Change, Operator};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// Every mutant of the device functions of a source, in the order of their places, each change once.
///
/// What the grammar can't make sense of has none, and neither have headers, macros and the host's functions. Text that it can't parse in
/// reasonable time, or of more than 16 MB, gives none at all.
#[must_use]
pub fn mutants(source: &str) -> Vec<Mutant> {
    let Some(tree) = parse(source) else { return Vec::new() };
    let mut walk = Walk { source, found: Vec::new(), seen: HashSet::new(), function: String::new() };
    let mut cursor = tree.walk();
    // By hand, not by recursion: a source may nest as deeply as it likes.
    let mut device: Option<Range<usize>> = None;
    loop {
        let node = cursor.node();
        if device.as_ref().is_some_and(|range| node.start_byte() >= range.end) {
            device = None;
        }
        if device.is_none() && node.kind() == "function_definition" {
            device = walk.enter(node);
        }
        if let Some(body) = &device
            && node.start_byte() >= body.start
            && !node.has_error()
        {
            walk.visit(node);
        }
        // Outside device functions only what may hold them is gone into; preprocessor lines never.
        let is_closed = node.kind().starts_with("preproc_") && !node.kind().starts_with("preproc_if");
        if !is_closed && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                walk.found.sort_by_key(|mutant| (mutant.range.start, mutant.operator));
                return walk.found;
            }
        }
    }
}

const MOST_BYTES: usize = 16 << 20;

fn parse(source: &str) -> Option<Tree> {
    if source.len() > MOST_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok()?;
    // A count of steps, not a clock: the same text always gives the same answer.
    let mut steps = 0_usize;
    let allowed = 100_000 + source.len() / 4;
    let mut stop = |_: &ParseState| {
        steps += 1;
        if steps > allowed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    let bytes = source.as_bytes();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or(&[]), None, Some(options))
}

struct Walk<'a> {
    source: &'a str,
    found: Vec<Mutant>,
    seen: HashSet<(Range<usize>, String)>,
    function: String,
}

impl<'a> Walk<'a> {
    /// The body of a function, if it is device code.
    fn enter(&mut self, function: Node) -> Option<Range<usize>> {
        let body = function.child_by_field_name("body")?;
        let head = &self.source[function.start_byte()..body.start_byte()];
        let is_device = head.contains("__global__") || head.contains("__device__");
        let declarator = function.child_by_field_name("declarator")?;
        let name = declarator.child_by_field_name("declarator").unwrap_or(declarator);
        self.function = self.text(name).to_owned();
        is_device.then(|| body.byte_range())
    }

    fn text(&self, node: Node) -> &'a str {
        &self.source[node.byte_range()]
    }

    fn add(&mut self, operator: Operator, node: Node, after: impl Into<String>) {
        let (range, after) = (node.byte_range(), after.into());
        if self.text(node) == after || !self.seen.insert((range.clone(), after.clone())) {
            return;
        }
        let place = node.start_position();
        let (function, before) = (self.function.clone(), self.text(node).to_owned());
        self.found.push(Mutant { operator, line: place.row + 1, column: place.column + 1, function, before, after, range });
    }

    fn visit(&mut self, node: Node) {
        match node.kind() {
            "binary_expression" => self.operator_of(node, operator::binary, None),
            "assignment_expression" => self.operator_of(node, operator::assignment, None),
            "update_expression" => self.update(node, Operator::Arithmetic),
            "number_literal" => {
                for after in operator::neighbours(self.text(node)) {
                    self.add(Operator::Constant, node, after);
                }
            }
            "for_statement" => self.for_loop(node),
            "while_statement" | "do_statement" => {
                if let Some(condition) = node.child_by_field_name("condition").and_then(inner) {
                    self.bound(condition);
                }
            }
            "if_statement" => {
                if let Some(condition) = node.child_by_field_name("condition").and_then(inner) {
                    self.add(Operator::Negation, condition, format!("!({})", self.text(condition)));
                }
            }
            "conditional_expression" => {
                if let Some(condition) = node.child_by_field_name("condition") {
                    self.add(Operator::Negation, condition, format!("!({})", self.text(condition)));
                }
            }
            "expression_statement" => self.statement(node),
            "call_expression" => self.atomic(node),
            "field_expression" => self.index(node),
            _ => {}
        }
    }

    /// Changes the operator of an expression; in a loop's condition it is the loop that changes.
    fn operator_of(&mut self, node: Node, table: fn(&str) -> Option<Change>, of_loop: Option<Operator>) {
        let Some(token) = node.child_by_field_name("operator") else { return };
        let Some((operator, others)) = table(self.text(token)) else { return };
        for after in others {
            self.add(of_loop.unwrap_or(operator), token, *after);
        }
    }

    fn update(&mut self, node: Node, operator: Operator) {
        let Some(token) = node.child_by_field_name("operator") else { return };
        let after = if self.text(token) == "++" { "--" } else { "++" };
        self.add(operator, token, after);
    }

    /// The walk comes to a loop before it comes to what is in its head, so that what is changed here is the loop's.
    fn for_loop(&mut self, node: Node) {
        if let Some(condition) = node.child_by_field_name("condition") {
            self.bound(condition);
        }
        let Some(step) = node.child_by_field_name("update") else { return };
        match step.kind() {
            "update_expression" => {
                self.update(step, Operator::LoopStep);
                let Some(counter) = step.child_by_field_name("argument") else { return };
                let counter = self.text(counter);
                let sign = if self.text(step).contains("++") { '+' } else { '-' };
                self.add(Operator::LoopStep, step, format!("{counter} {sign}= 2"));
                self.add(Operator::LoopStep, step, counter);
            }
            "assignment_expression" => {
                self.operator_of(step, operator::assignment, Some(Operator::LoopStep));
                if let Some(counter) = step.child_by_field_name("left") {
                    self.add(Operator::LoopStep, step, self.text(counter));
                }
            }
            _ => {}
        }
    }

    fn bound(&mut self, condition: Node) {
        if condition.kind() == "binary_expression" {
            self.operator_of(condition, operator::binary, Some(Operator::LoopBound));
            let token = condition.child_by_field_name("operator").map_or("", |token| self.text(token));
            let Some(bound) = condition.child_by_field_name("right") else { return };
            // Among whole numbers `<=` goes one round further than `<`, so the other operator is one of the two neighbours already.
            let (other, same) = match token {
                "<" | ">=" => (" - 1", 1),
                "<=" | ">" => (" + 1", -1),
                _ => return,
            };
            match (bound.kind() == "number_literal").then(|| operator::whole(self.text(bound))).flatten() {
                // Those of a number are the constant's, which would be made again.
                Some(literal) => {
                    self.seen.extend(literal.by(same).map(|after| (bound.byte_range(), after)));
                    if let Some(after) = literal.by(-same) {
                        self.add(Operator::LoopBound, bound, after);
                    }
                }
                None => self.add(Operator::LoopBound, bound, format!("({}){other}", self.text(bound))),
            }
        } else {
            self.add(Operator::LoopBound, condition, format!("!({})", self.text(condition)));
        }
    }

    /// Leaves a statement out: a barrier, an assignment, a call for its effect.
    fn statement(&mut self, node: Node) {
        let Some(expression) = node.named_child(0) else { return };
        let operator = match expression.kind() {
            "call_expression" => match expression.child_by_field_name("function") {
                Some(function) if operator::is_barrier(self.text(function)) => Operator::Barrier,
                _ => Operator::Deletion,
            },
            "assignment_expression" | "update_expression" => Operator::Deletion,
            _ => return,
        };
        self.add(operator, node, ";");
    }

    /// Only where nobody uses what it returns.
    fn atomic(&mut self, node: Node) {
        let is_statement = node.parent().is_some_and(|parent| parent.kind() == "expression_statement");
        let (Some(function), Some(arguments)) = (node.child_by_field_name("function"), node.child_by_field_name("arguments")) else {
            return;
        };
        if let (true, Some(make), 2) = (is_statement, operator::plain(self.text(function)), arguments.named_child_count())
            && let (Some(at), Some(value)) = (arguments.named_child(0), arguments.named_child(1))
        {
            self.add(Operator::Atomic, node, make(self.text(at), self.text(value)));
        }
    }

    fn index(&mut self, node: Node) {
        let (Some(of), Some(field)) = (node.child_by_field_name("argument"), node.child_by_field_name("field")) else { return };
        let other = match self.text(of) {
            "threadIdx" => "blockIdx",
            "blockIdx" => "threadIdx",
            "blockDim" => "gridDim",
            "gridDim" => "blockDim",
            _ => return,
        };
        let dimension = match self.text(field) {
            "x" => "y",
            "y" | "z" => "x",
            _ => return,
        };
        self.add(Operator::Index, of, other);
        self.add(Operator::Dimension, field, dimension);
    }
}

/// What stands between the parentheses of a condition.
fn inner(condition: Node) -> Option<Node> {
    match condition.kind() {
        "condition_clause" => condition.child_by_field_name("value"),
        "parenthesized_expression" => condition.named_child(0),
        _ => Some(condition),
    }
    // A declaration is a condition, too, and no expression.
    .filter(|value| value.kind().ends_with("_expression") || matches!(value.kind(), "identifier" | "true" | "false" | "number_literal"))
}
