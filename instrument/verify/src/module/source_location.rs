//! Where a statement stands: its line in the PTX, and its place in the source, from `.loc`.

use crate::module::report::{Frame, Place};
use cuinstr_ptx::{Function, Inlined, Module, Point, Strings};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Most calls that were inlined into each other of which each is listed.
const MOST_INLINED: usize = 64;

/// Turns `.loc` directives into places. PTX ISA 9.0, 11.5.3.
#[derive(Debug)]
pub(crate) struct SourceLocations<'a> {
    text: &'a str,
    module: &'a Module<'a>,
    files: BTreeMap<u32, &'a str>,
    names: OnceCell<Strings<'a>>,
    /// For the place at which something was inlined, where that place itself was inlined.
    chains: OnceCell<BTreeMap<Point, Inlined<'a>>>,
}

impl<'a> SourceLocations<'a> {
    pub(crate) fn new(text: &'a str, module: &'a Module<'a>) -> Self {
        Self {
            text,
            module,
            files: module.files.iter().map(|(number, path)| (*number, &**path)).collect(),
            names: OnceCell::new(),
            chains: OnceCell::new(),
        }
    }

    /// Where the code at a place was inlined, if it was.
    fn chain(&self, at: Point) -> Option<&Inlined<'a>> {
        let chains = self.chains.get_or_init(|| {
            let mut chains = BTreeMap::new();
            for function in &self.module.functions {
                for location in &function.locations {
                    if let Some(inlined) = function.inlined(location) {
                        chains.entry(location.point).or_insert(*inlined);
                    }
                }
            }
            chains
        });
        chains.get(&at)
    }

    /// The line of a source that a statement is from; none for line 0, which stands for no line.
    pub(crate) fn line(function: &Function<'_>, statement: u32) -> Option<Point> {
        function.location(statement).map(|location| location.point).filter(|point| point.line != 0)
    }

    /// The place that a statement is from, with where it was inlined from the inside out.
    pub(crate) fn find(&self, function: &Function<'_>, statement: u32) -> Option<Place> {
        let location = function.location(statement).filter(|location| location.point.line != 0)?;
        let mut inlined = Vec::new();
        let mut next = function.inlined(location);
        while let Some(Inlined { function: label, offset, at }) = next {
            if inlined.len() >= MOST_INLINED {
                break;
            }
            let names = self.names.get_or_init(|| Strings::new(self.text, self.module));
            inlined.push(Frame { function: names.get(label, *offset), file: self.file(at.file), line: at.line, column: at.column });
            // A chain that goes round is none.
            next = self.chain(*at).filter(|outer| outer.at != *at);
        }
        let Point { file, line, column } = location.point;
        Some(Place { file: self.file(file), line, column, inlined })
    }

    pub(crate) fn file(&self, number: u32) -> String {
        self.files.get(&number).map_or_else(|| format!("file {number}"), |path| (*path).to_owned())
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(crate) struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        Self { starts: std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1)).collect() }
    }

    /// The line of a statement.
    pub(crate) fn of(&self, function: &Function<'_>, statement: u32) -> usize {
        self.number(function.statements[statement as usize].start as usize)
    }

    /// The line of the text, from 1, that holds this byte.
    pub(crate) fn number(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= offset)
    }
}
