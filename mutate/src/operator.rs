//! The operators: what is changed into what.

use serde::Serialize;

/// A way to change a program, as the literature on mutation testing names them, and those that CUDA adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// `+` for `-` and so on, `+=` for `-=` and so on.
    Arithmetic,
    /// `<` for `<=` and `>=` and so on, outside the conditions of loops.
    Relational,
    /// `&&` for `||`.
    Logical,
    /// `&` for `|`, `<<` for `>>`.
    Bitwise,
    /// A condition turned round: `if (!(…))`.
    Negation,
    /// A number for its neighbours.
    Constant,
    /// A statement left out.
    Deletion,
    /// The condition of a loop: one round more or less, or the other way round.
    LoopBound,
    /// The step of a loop: the other direction, double, or none.
    LoopStep,
    /// A barrier left out: of a block, a warp, a group, or a memory fence.
    Barrier,
    /// An atomic operation made of a plain read and write.
    Atomic,
    /// Another dimension of an index: `threadIdx.x` for `threadIdx.y`.
    Dimension,
    /// Another index: `threadIdx` for `blockIdx`, `blockDim` for `gridDim`.
    Index,
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Arithmetic,
        Self::Relational,
        Self::Logical,
        Self::Bitwise,
        Self::Negation,
        Self::Constant,
        Self::Deletion,
        Self::LoopBound,
        Self::LoopStep,
        Self::Barrier,
        Self::Atomic,
        Self::Dimension,
        Self::Index,
    ];

    /// The operator of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.name() == name)
    }

    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Relational => "relational",
            Self::Logical => "logical",
            Self::Bitwise => "bitwise",
            Self::Negation => "negation",
            Self::Constant => "constant",
            Self::Deletion => "deletion",
            Self::LoopBound => "loop-bound",
            Self::LoopStep => "loop-step",
            Self::Barrier => "barrier",
            Self::Atomic => "atomic",
            Self::Dimension => "dimension",
            Self::Index => "index",
        }
    }
}

/// What a token is changed by, and into what.
pub(crate) type Change = (Operator, &'static [&'static str]);

/// What stands for an operator of two operands.
pub(crate) fn binary(token: &str) -> Option<Change> {
    Some(match token {
        "+" => (Operator::Arithmetic, &["-"]),
        "-" => (Operator::Arithmetic, &["+"]),
        "*" => (Operator::Arithmetic, &["/", "+"]),
        "/" => (Operator::Arithmetic, &["*"]),
        "%" => (Operator::Arithmetic, &["/"]),
        "<" => (Operator::Relational, &["<=", ">="]),
        "<=" => (Operator::Relational, &["<", ">"]),
        ">" => (Operator::Relational, &[">=", "<="]),
        ">=" => (Operator::Relational, &[">", "<"]),
        "==" => (Operator::Relational, &["!="]),
        "!=" => (Operator::Relational, &["=="]),
        "&&" => (Operator::Logical, &["||"]),
        "||" => (Operator::Logical, &["&&"]),
        "&" => (Operator::Bitwise, &["|"]),
        "|" => (Operator::Bitwise, &["&"]),
        "^" => (Operator::Bitwise, &["&"]),
        "<<" => (Operator::Bitwise, &[">>"]),
        ">>" => (Operator::Bitwise, &["<<"]),
        _ => return None,
    })
}

/// What stands for a compound assignment.
pub(crate) fn assignment(token: &str) -> Option<Change> {
    Some(match token {
        "+=" => (Operator::Arithmetic, &["-=", "="]),
        "-=" => (Operator::Arithmetic, &["+=", "="]),
        "*=" => (Operator::Arithmetic, &["/="]),
        "/=" => (Operator::Arithmetic, &["*="]),
        "%=" => (Operator::Arithmetic, &["/="]),
        "&=" => (Operator::Bitwise, &["|="]),
        "|=" => (Operator::Bitwise, &["&="]),
        "^=" => (Operator::Bitwise, &["&="]),
        "<<=" => (Operator::Bitwise, &[">>="]),
        ">>=" => (Operator::Bitwise, &["<<="]),
        _ => return None,
    })
}

/// Whether a function only orders threads or memory, so that a statement of it alone can be left out.
pub(crate) fn is_barrier(function: &str) -> bool {
    let name = function.rsplit(['.', '>', ':']).next().unwrap_or(function).trim();
    matches!(name, "__syncthreads" | "__syncwarp" | "__threadfence" | "__threadfence_block" | "__threadfence_system")
        || matches!(name, "sync" | "arrive_and_wait")
}

/// The assignment that an atomic function of CUDA makes, if it is one, of its address and its value.
pub(crate) fn plain(function: &str) -> Option<fn(&str, &str) -> String> {
    let name = function.strip_suffix("_block").or_else(|| function.strip_suffix("_system")).unwrap_or(function);
    Some(match name {
        "atomicAdd" => |at, value| format!("*({at}) += ({value})"),
        "atomicSub" => |at, value| format!("*({at}) -= ({value})"),
        "atomicAnd" => |at, value| format!("*({at}) &= ({value})"),
        "atomicOr" => |at, value| format!("*({at}) |= ({value})"),
        "atomicXor" => |at, value| format!("*({at}) ^= ({value})"),
        "atomicExch" => |at, value| format!("*({at}) = ({value})"),
        "atomicMin" => |at, value| format!("*({at}) = min(*({at}), ({value}))"),
        "atomicMax" => |at, value| format!("*({at}) = max(*({at}), ({value}))"),
        _ => return None,
    })
}

/// The neighbours of a literal: of an integer of any base its neighbours, of a fraction its double and its negative.
pub(crate) fn neighbours(literal: &str) -> Vec<String> {
    let lower = literal.to_ascii_lowercase();
    let is_hexadecimal = lower.starts_with("0x");
    if !is_hexadecimal && lower.contains(['.', 'e']) {
        return vec![format!("(2 * {literal})"), format!("(-{literal})")];
    }
    let Some(whole) = whole(literal) else { return Vec::new() };
    [whole.by(1), whole.by(-1)].into_iter().flatten().collect()
}

/// A whole number as it is written, without its base: its value, and the letters that say its type.
pub(crate) struct Whole<'a> {
    value: u64,
    suffix: &'a str,
}

impl Whole<'_> {
    /// The number that is larger by so much, of the same type.
    pub(crate) fn by(&self, step: i64) -> Option<String> {
        self.value.checked_add_signed(step).map(|value| format!("{value}{}", self.suffix))
    }
}

/// A literal of a whole number, of any base.
pub(crate) fn whole(literal: &str) -> Option<Whole<'_>> {
    let lower = literal.to_ascii_lowercase();
    let digits = lower.replace('\'', "");
    let digits = digits.trim_end_matches(['u', 'l', 'z']);
    let value = match digits.get(..2) {
        Some("0x") => u64::from_str_radix(&digits[2..], 16),
        Some("0b") => u64::from_str_radix(&digits[2..], 2),
        _ if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
        _ => digits.parse(),
    };
    let suffix = &literal[literal.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']).len()..];
    Some(Whole { value: value.ok()?, suffix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_neighbours_of_their_own_type() {
        for (literal, expected) in [
            ("0", &["1"][..]),
            ("16", &["17", "15"]),
            ("1u", &["2u", "0u"]),
            ("0x10ull", &["17ull", "15ull"]),
            ("1'000", &["1001", "999"]),
            ("010", &["9", "7"]),
            ("0b11", &["4", "2"]),
            ("2.5f", &["(2 * 2.5f)", "(-2.5f)"]),
            ("1e3", &["(2 * 1e3)", "(-1e3)"]),
            ("18446744073709551615", &["18446744073709551614"]),
            ("99999999999999999999", &[]),
            ("1_km", &[]),
        ] {
            assert_eq!(neighbours(literal), expected, "{literal}");
        }
    }

    #[test]
    fn names_are_those_of_json() {
        for operator in Operator::ALL {
            assert!(operator.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        }
        assert!(is_barrier("cg::this_grid().sync") && is_barrier("block->sync") && !is_barrier("synchronize"));
        assert_eq!(plain("atomicMin_block").map(|make| make("p", "v")).as_deref(), Some("*(p) = min(*(p), (v))"));
    }
}
