//! Which names stand for one register in all of a function.

use cuinstr_ptx::{Function, RegisterDeclaration};
use std::collections::BTreeMap;

/// Declarations of registers by the names that they begin with.
#[derive(Debug)]
pub(in crate::polls) struct Declared<'a> {
    by_name: BTreeMap<&'a str, Vec<u32>>,
}

impl<'a> Declared<'a> {
    pub(in crate::polls) fn new(function: &Function<'a>) -> Self {
        let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (declaration, number) in function.registers.iter().zip(0..) {
            by_name.entry(declaration.name).or_default().push(number);
        }
        Self { by_name }
    }

    /// Whether a name stands for one scalar register wherever the function uses it, which instructions for integers take, and a statement sees that.
    pub(in crate::polls) fn means_one(&self, function: &Function<'_>, name: &str, statement: u32) -> bool {
        let prefix = name.trim_end_matches(|next: char| next.is_ascii_digit());
        let exact = self.by_name.get(name).into_iter().flatten();
        let ranges = self.by_name.get(prefix).into_iter().flatten().filter(|_| prefix != name);
        let mut all = exact.chain(ranges).map(|number| &function.registers[*number as usize]);
        let mut scope = function.statements[statement as usize].scope;
        let Some(only) = all.next().filter(|_| all.next().is_none()) else { return false };
        while scope != only.scope && function.scopes[scope as usize].outer != scope {
            scope = function.scopes[scope as usize].outer;
        }
        only.lanes == 1 && !is_float(only) && only.statement <= statement && scope == only.scope
    }
}

/// Whether instructions for integers refuse a register.
pub(in crate::polls) fn is_float(declared: &RegisterDeclaration<'_>) -> bool {
    declared.kind.starts_with(".f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_register_or_it_is_left_alone() {
        let body = "mov.b32 %r1, 0; mov.b32 %v, 0; mov.b32 %w, 0; mov.b32 %q, 0; { .reg .b32 %q, %s; mov.b32 %s, %r2; mov.b32 %q, 0; }";
        let text = format!(
            ".version 9.0 .target sm_90 .entry k() {{ .reg .b32 %r<9>; .reg .v2 .b32 %v; .reg .b32 %q; .reg .f32 %f; {body} .reg .b32 %w; ret; }}"
        );
        let module = cuinstr_ptx::parse(&text);
        let function = &module.functions[0];
        let declared = Declared::new(function);
        for (name, statement, wanted) in [
            ("%r1", 0, true),
            ("%r2", 4, true),
            // A float; a vector; one of two; one that is declared further on, or in a scope that was left.
            ("%f", 1, false),
            ("%v", 1, false),
            ("%q", 3, false),
            ("%q", 5, false),
            ("%w", 2, false),
            ("%s", 4, true),
            ("%s", 6, false),
            ("%t", 0, false),
        ] {
            assert_eq!(declared.means_one(function, name, statement), wanted, "{name} at {statement}");
        }
    }
}
