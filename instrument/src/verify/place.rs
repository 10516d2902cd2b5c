//! Places in sources, from `.loc`.

use super::report::{Frame, Place};
use super::text::Module;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Turns `.loc` lines into places. PTX ISA 9.0, 11.5.3: `.loc file line column[, function_name label[+offset], inlined_at file line column]`.
#[derive(Debug)]
pub(super) struct Places<'a> {
    module: &'a Module<'a>,
    files: BTreeMap<u32, &'a str>,
    names: BTreeMap<&'a str, &'a str>,
    /// For the place at which something was inlined, where that place itself was inlined.
    chains: OnceCell<BTreeMap<(u32, u32, u32), &'a str>>,
}

struct Location<'a> {
    file: u32,
    line: u32,
    column: u32,
    inlined: Option<(&'a str, (u32, u32, u32))>,
}

fn parse(loc: &str) -> Option<Location<'_>> {
    let mut parts = loc.split(',');
    let three = |text: &str| {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
        Some((words.next()??, words.next()??, words.next().flatten().unwrap_or(0)))
    };
    let (file, line, column) = three(parts.next()?)?;
    let mut inlined = None;
    if let (Some(name), Some(at)) = (parts.next(), parts.next())
        && let (Some(name), Some(at)) = (name.trim().strip_prefix("function_name"), at.trim().strip_prefix("inlined_at"))
    {
        inlined = three(at).map(|at| (name.trim(), at));
    }
    Some(Location { file, line, column, inlined })
}

impl<'a> Places<'a> {
    pub(super) fn new(module: &'a Module<'a>) -> Self {
        Self {
            module,
            files: module.files.iter().copied().collect(),
            names: module.strings.iter().copied().collect(),
            chains: OnceCell::new(),
        }
    }

    /// The `.loc` of the place at which something was inlined, if that place itself was inlined.
    fn chain(&self, at: (u32, u32, u32)) -> Option<&'a str> {
        let chains = self.chains.get_or_init(|| {
            let mut chains = BTreeMap::new();
            for &loc in self.module.functions.iter().flat_map(|function| &function.places) {
                if loc.contains("inlined_at")
                    && let Some(location) = parse(loc)
                {
                    chains.entry((location.file, location.line, location.column)).or_insert(loc);
                }
            }
            chains
        });
        chains.get(&at).copied()
    }

    /// Which line of a source a `.loc` names; none for line 0, which stands for no line.
    pub(super) fn line(loc: &str) -> Option<(u32, u32)> {
        parse(loc).map(|location| (location.file, location.line)).filter(|(_, line)| *line != 0)
    }

    /// The place, with where it was inlined from the inside out.
    pub(super) fn find(&self, loc: &str) -> Option<Place> {
        let location = parse(loc).filter(|location| location.line != 0)?;
        let mut inlined = Vec::new();
        let mut next = location.inlined;
        while let Some((label, at)) = next {
            // A chain is as deep as the source's calls; one that goes round is no chain.
            if inlined.len() >= 64 {
                break;
            }
            inlined.push(Frame { function: self.name(label), file: self.file(at.0), line: at.1, column: at.2 });
            next = self.chain(at).and_then(parse).and_then(|location| location.inlined).filter(|(_, outer)| *outer != at);
        }
        Some(Place { file: self.file(location.file), line: location.line, column: location.column, inlined })
    }

    pub(super) fn file(&self, number: u32) -> String {
        self.files.get(&number).map_or_else(|| format!("file {number}"), |path| (*path).to_owned())
    }

    /// The name that a label of the debug strings stands for.
    fn name(&self, label: &str) -> String {
        let (label, offset) = label.split_once('+').unwrap_or((label, "0"));
        let offset: usize = offset.trim().parse().unwrap_or(0);
        let Some(data) = self.names.get(label.trim()) else { return String::new() };
        let words = data.split(|next: char| !next.is_ascii_digit()).filter(|word| !word.is_empty());
        let bytes = words.map(|word| word.parse().unwrap_or(b'?'));
        // The digit of each line's `.b8` counts as a byte of value 8, which no name holds.
        let bytes: Vec<u8> = bytes.filter(|byte| *byte != 8).skip(offset).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
