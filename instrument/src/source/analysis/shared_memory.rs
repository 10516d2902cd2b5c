//! The shared memory that a file declares. A kernel may declare 48 KiB in all, and the words of the prelude must not take it beyond that.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::integer;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::{Kind, Lexed};
use std::collections::BTreeMap;

/// Most names that are followed from one to another.
const DEPTH: u32 = 8;

/// Bytes of all shared memory that the file declares with sizes of its own; none if the text of one does not tell. Kernels share no memory, so
/// one of them declares no more.
pub(crate) fn bytes(source: &[u8], lexed: &Lexed, file: &Fragment, macros: &Macros) -> Option<u64> {
    if memchr::memmem::find(source, b"__shared__").is_none() {
        return Some(0);
    }
    let constants = Constants::read(source, file, macros);
    let mut sum = 0_u64;
    for fragment in std::iter::once(file).chain(macros.bodies()) {
        for at in 0..fragment.len() {
            if fragment.text(source, at) != b"__shared__" || fragment.kind(at + 1).is_none() {
                continue;
            }
            // A macro that stands for the word, or declares what its arguments say.
            if fragment.of_macro.is_some() {
                return None;
            }
            sum = sum.saturating_add(declaration(&constants, fragment, at)?);
        }
    }
    let is_alias = |token: &crate::source::syntax::token::Token| {
        macros.bodies_of(&source[token.range()]).any(|body| body.text(source, 0) == b"__shared__")
    };
    (!lexed.tokens.iter().any(|token| token.kind == Kind::Ident && is_alias(token))).then_some(sum)
}

/// The bytes of one declaration.
fn declaration(constants: &Constants, fragment: &Fragment, word: usize) -> Option<u64> {
    let source = constants.source;
    let text = |at: usize| fragment.text(source, at);
    if word.checked_sub(1).is_some_and(|before| text(before) == b"extern") {
        return Some(0);
    }
    let mut at = word + 1;
    let mut element: Option<u64> = None;
    // The type: words up to the last name in front of `[`, `,`, `;`, `=` or `{`.
    while !matches!(fragment.kind(at + 1), Some(Kind::Punct(b'[' | b',' | b';' | b'{') | Kind::Assign)) {
        match (fragment.kind(at)?, text(at)) {
            (_, b"extern") => return Some(0),
            (Kind::Keyword, b"const" | b"volatile" | b"static" | b"unsigned" | b"signed" | b"typename") => {}
            (Kind::Keyword, b"alignas" | b"__align__" | b"__attribute__") => at = fragment.mate(at + 1)?,
            (_, word) => element = Some(element.unwrap_or(0).max(size_of(word)?)),
        }
        at += 1;
    }
    let element = element.unwrap_or(4);
    let mut sum = 0_u64;
    loop {
        let mut count = 1_u64;
        at += 1;
        while fragment.is(at, b'[') {
            let close = fragment.mate(at)?;
            let length = constants.value(fragment, at + 1..close, DEPTH)?;
            count = count.saturating_mul(u64::try_from(length).ok()?);
            at = close + 1;
        }
        sum = sum.saturating_add(count.saturating_mul(element));
        match fragment.kind(at)? {
            Kind::Punct(b',') => at += 1,
            Kind::Punct(b';') => return Some(sum),
            _ => return None,
        }
    }
}

/// The size of a type of that name, if it is one of the language's or of CUDA's own.
fn size_of(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"bool" | b"char" | b"int8_t" | b"uint8_t" | b"uchar" => 1,
        b"short" | b"int16_t" | b"uint16_t" | b"half" | b"__half" | b"__nv_bfloat16" | b"char2" | b"uchar2" => 2,
        b"int" | b"float" | b"int32_t" | b"uint32_t" | b"uint" | b"half2" | b"__half2" | b"char4" | b"uchar4" | b"short2" => 4,
        b"long" | b"double" | b"int64_t" | b"uint64_t" | b"size_t" | b"float2" | b"int2" | b"uint2" | b"short4" => 8,
        b"float3" | b"int3" | b"uint3" => 12,
        b"float4" | b"int4" | b"uint4" | b"double2" | b"longlong2" | b"ulonglong2" => 16,
        _ => return None,
    })
}

/// Names that stand for numbers.
struct Constants<'a> {
    source: &'a [u8],
    macros: &'a Macros<'a>,
    file: &'a Fragment,
    /// Values of constants: tokens from behind `=` to the end.
    values: BTreeMap<&'a [u8], Vec<std::ops::Range<usize>>>,
}

impl<'a> Constants<'a> {
    fn read(source: &'a [u8], file: &'a Fragment, macros: &'a Macros<'a>) -> Self {
        let mut values: BTreeMap<&[u8], Vec<std::ops::Range<usize>>> = BTreeMap::new();
        let mut is_constant = false;
        for at in 0..file.len() {
            match file.kind(at) {
                Some(Kind::Constexpr) => is_constant = true,
                Some(Kind::Keyword) if file.text(source, at) == b"const" => is_constant = true,
                Some(Kind::Punct(b';' | b'{' | b'}' | b'(' | b')')) => is_constant = file.is(at, b'{') && is_enumeration(source, file, at),
                Some(Kind::Assign) if is_constant && at > 0 => {
                    let is_end = |end: &usize| matches!(file.kind(*end), Some(Kind::Punct(b',' | b';' | b'}')) | None);
                    let end = (at + 1..=file.len()).find(is_end).unwrap_or(file.len());
                    values.entry(file.text(source, at - 1)).or_default().push(at + 1..end);
                }
                _ => {}
            }
        }
        Self { source, macros, file, values }
    }

    /// The most that a name may stand for.
    fn named(&self, name: &[u8], depth: u32) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        let mut most = None;
        for body in self.macros.bodies_of(name) {
            most = most.max(Some(self.value(body, 0..body.len(), depth)?));
        }
        for range in self.values.get(name).into_iter().flatten() {
            most = most.max(Some(self.value(self.file, range.clone(), depth)?));
        }
        most
    }

    /// The most that an expression of sums, products and quotients is.
    fn value(&self, fragment: &Fragment, range: std::ops::Range<usize>, depth: u32) -> Option<i64> {
        let mut at = range.start;
        let value = self.sum(fragment, &mut at, range.end, depth)?;
        (at == range.end).then_some(value)
    }

    fn sum(&self, fragment: &Fragment, at: &mut usize, end: usize, depth: u32) -> Option<i64> {
        let mut value = self.product(fragment, at, end, depth)?;
        while *at < end {
            let sign = match fragment.kind(*at)? {
                Kind::Punct(b'+') => 1,
                Kind::Punct(b'-') => -1,
                _ => break,
            };
            *at += 1;
            value = value.checked_add(self.product(fragment, at, end, depth)?.checked_mul(sign)?)?;
        }
        Some(value)
    }

    fn product(&self, fragment: &Fragment, at: &mut usize, end: usize, depth: u32) -> Option<i64> {
        let mut value = self.operand(fragment, at, end, depth)?;
        while *at < end {
            let is_product = match fragment.kind(*at)? {
                Kind::Punct(b'*') => true,
                Kind::Punct(b'/') => false,
                _ => break,
            };
            *at += 1;
            let other = self.operand(fragment, at, end, depth)?;
            value = if is_product { value.checked_mul(other)? } else { value.checked_div(other)? };
        }
        Some(value)
    }

    fn operand(&self, fragment: &Fragment, at: &mut usize, end: usize, depth: u32) -> Option<i64> {
        let first = *at;
        if first >= end {
            return None;
        }
        *at += 1;
        match fragment.kind(first)? {
            Kind::Number => integer::literal(fragment.text(self.source, first)).map(|integer| integer.value),
            Kind::Ident => self.named(fragment.text(self.source, first), depth),
            Kind::Punct(b'(') => {
                let close = fragment.mate(first).filter(|close| *close > first && *close < end)?;
                *at = close + 1;
                self.value(fragment, first + 1..close, depth.checked_sub(1)?)
            }
            _ => None,
        }
    }
}

/// Whether the brace opens an enumeration.
fn is_enumeration(source: &[u8], fragment: &Fragment, open: usize) -> bool {
    (open.saturating_sub(6)..open).rev().take_while(|at| !fragment.is(*at, b';')).any(|at| fragment.text(source, at) == b"enum")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::options::Options;
    use crate::source::syntax::token::lex;

    #[test]
    fn what_a_file_declares_is_summed_up_or_not_known() {
        let of = |text: &str| {
            let (source, options) = (text.as_bytes(), Options::default());
            let lexed = lex(source, 0..source.len(), false);
            let macros = Macros::read(source, &lexed, &options);
            bytes(source, &lexed, &Fragment::of_file(&lexed).expect("balanced"), &macros)
        };
        assert_eq!(of("int x;"), Some(0));
        assert_eq!(of("__shared__ int s[12288];"), Some(49152));
        assert_eq!(of("__shared__ volatile unsigned char a[16], b; __shared__ double d;"), Some(25));
        assert_eq!(of("#define TILE 16\nconstexpr int N = TILE * 2; __shared__ float a[TILE][N + 1];"), Some(4 * 16 * 33));
        assert_eq!(of("enum { A, B = 64 }; __shared__ __align__(16) half a[2][(B + 4) / 2];"), Some(2 * 2 * 34));
        assert_eq!(of("extern __shared__ float a[];"), Some(0));
        assert_eq!(of("template <int N> __global__ void k() { __shared__ int s[N]; }"), None);
        assert_eq!(of("__shared__ typename T::Storage s;"), None);
        assert_eq!(of("#define SHARED __shared__\nSHARED int s[4];"), None);
        assert_eq!(of("#define TILE(n) __shared__ int s[n]\n"), None);
    }
}
