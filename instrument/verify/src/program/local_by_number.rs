//! Local memory by addresses that are made of no variable. A plain number names any byte of a thread's stack, those of
//! the function's callers too.

use crate::program::instruction::{head_of, spaces};
use cuinstr_ptx::{Code, Declared, Operand, Register};

/// Most times that statements are looked at for which registers hold addresses.
const MOST_LOOKS: usize = 8;

/// Numbers up to this one are set or cleared in an address to round it.
const MOST_ROUNDED: i64 = 4096;

/// Whether an instruction takes a number as an address of local memory, or gives or sets where the stack ends.
pub(crate) fn names_local(opcode: &str) -> bool {
    match head_of(opcode) {
        "isspacep" => false,
        "stacksave" | "stackrestore" => true,
        _ => spaces(opcode).any(|space| space == "local"),
    }
}

/// Whether a function names local memory by an address that is no sum of one of its own variables.
pub(crate) fn is_named_by_number(code: &Code<'_>) -> bool {
    let all = 0..code.function.statements.len() as u32;
    let named: Vec<u32> = all.filter(|at| names_local(code.opcode(*at))).collect();
    if named.is_empty() {
        return false;
    }
    let Some(sums) = Sums::find(code) else { return true };
    named.into_iter().any(|at| !sums.is_access(at))
}

fn is_address(operand: Operand) -> bool {
    matches!(operand, Operand::At(..) | Operand::AtName(..) | Operand::AtNumber(_) | Operand::Address(_))
}

/// The registers that hold addresses of variables.
struct Sums<'c, 'a> {
    code: &'c Code<'a>,
    /// Whether some statement makes a register of such an address, in whatever way.
    may: Vec<bool>,
    /// Whether each statement that writes a register leaves such an address there.
    holds: Vec<bool>,
}

impl<'c, 'a> Sums<'c, 'a> {
    /// None if that takes too long.
    fn find(code: &'c Code<'a>) -> Option<Self> {
        let count = code.register_count() as usize;
        let mut sums = Self { code, may: vec![false; count], holds: vec![false; count] };
        sums.settle(|sums, at, register| {
            let is_made = code.all_operands(at).iter().any(|operand| sums.may(*operand));
            is_made && !std::mem::replace(&mut sums.may[register as usize], true)
        })?;
        sums.holds.clone_from(&sums.may);
        sums.settle(|sums, at, register| !sums.is_left(at) && std::mem::take(&mut sums.holds[register as usize]))?;
        Some(sums)
    }

    /// Asks for each register that is written whether that changes something, until nothing does.
    fn settle(&mut self, mut change: impl FnMut(&mut Self, u32, Register) -> bool) -> Option<()> {
        for _ in 0..MOST_LOOKS {
            let mut is_changed = false;
            for at in 0..self.code.function.statements.len() as u32 {
                let code = self.code;
                code.each_written(at, |register| is_changed |= change(self, at, register));
            }
            if !is_changed {
                return Some(());
            }
        }
        None
    }

    fn is_variable(&self, operand: Operand) -> bool {
        let (Operand::Name(name, _) | Operand::AtName(name, _)) = operand else { return false };
        match self.code.name(name).declared {
            Declared::Variable(variable) => self.code.function.variables[variable as usize].space == ".local",
            _ => false,
        }
    }

    /// Whether something may be made of a variable's address.
    fn may(&self, operand: Operand) -> bool {
        match operand {
            Operand::Register(register) | Operand::Negated(register) | Operand::Part(register) => self.may[register as usize],
            Operand::Name(..) => self.is_variable(operand),
            _ => false,
        }
    }

    fn holds(&self, operand: Operand) -> bool {
        match operand {
            Operand::Register(register) | Operand::At(register, _) => self.holds[register as usize],
            _ => self.is_variable(operand),
        }
    }

    /// Whether a statement leaves a variable's address in the register that it writes, or that and a number.
    fn is_left(&self, at: u32) -> bool {
        let sum = |of: Operand, more: Operand| self.holds(of) && !self.may(more);
        let number = |of: Operand| if let Operand::Integer(number) = of { Some(number) } else { None };
        match (head_of(self.code.opcode(at)), self.code.operands(at)) {
            ("mov" | "cvta", [Operand::Register(_), of]) => self.holds(*of),
            ("add", [_, one, two]) => sum(*one, *two) || sum(*two, *one),
            ("sub", [_, one, two]) => sum(*one, *two),
            ("mad", [_, one, two, of]) => sum(*of, *one) && !self.may(*two),
            ("selp", [_, one, two, _]) => self.holds(*one) && self.holds(*two),
            ("or", [_, of, more]) => self.holds(*of) && number(*more).is_some_and(|more| (0..MOST_ROUNDED).contains(&more)),
            ("and", [_, of, more]) => self.holds(*of) && number(*more).is_some_and(|more| (-MOST_ROUNDED..0).contains(&more)),
            _ => false,
        }
    }

    /// Whether an instruction that names local memory does so by a variable's address.
    fn is_access(&self, at: u32) -> bool {
        let operands = self.code.operands(at);
        match head_of(self.code.opcode(at)) {
            "cvta" => operands.get(1).is_some_and(|of| self.holds(*of)),
            _ => operands.iter().copied().find(|operand| is_address(*operand)).is_some_and(|address| self.holds(address)),
        }
    }
}
