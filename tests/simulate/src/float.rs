//! Arithmetic on `f32` and `f64`, rounded to nearest. Approximate instructions give the host's result.

use crate::program::Pure;
use crate::types::{Kind, Type};
use std::cmp::Ordering;
use std::sync::Arc;

/// Numbers of 32 or 64 bits, both handled as the type that holds them.
trait Float: Copy + PartialOrd + Send + Sync + 'static {
    fn get(bits: u64) -> Self;
    fn put(self) -> u64;
    fn double(self) -> f64;
    fn is_none(self) -> bool;
}

impl Float for f32 {
    fn get(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn put(self) -> u64 {
        // Hardware has one value that is no number.
        u64::from(if self.is_nan() { 0x7fff_ffff } else { self.to_bits() })
    }
    fn double(self) -> f64 {
        f64::from(self)
    }
    fn is_none(self) -> bool {
        self.is_nan()
    }
}

impl Float for f64 {
    fn get(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn put(self) -> u64 {
        if self.is_nan() { 0xfff8_0000_0000_0000 } else { self.to_bits() }
    }
    fn double(self) -> f64 {
        self
    }
    fn is_none(self) -> bool {
        self.is_nan()
    }
}

macro_rules! arithmetic {
    ($name:ident, $float:ty) => {
        fn $name(opcode: &str, modifiers: &[&str]) -> Option<Pure> {
            type F = $float;
            let has = |word: &str| modifiers.contains(&word);
            let f = |v: &[u64; 4], at: usize| <F as Float>::get(v[at]);
            let inner: fn(F, F, F) -> F = match opcode {
                "add" => |a, b, _| a + b,
                "sub" => |a, b, _| a - b,
                "mul" => |a, b, _| a * b,
                "div" => |a, b, _| a / b,
                "fma" | "mad" => |a, b, c| a.mul_add(b, c),
                "min" if has("NaN") => |a, b, _| if a.is_nan() || b.is_nan() { F::NAN } else { a.min(b) },
                "max" if has("NaN") => |a, b, _| if a.is_nan() || b.is_nan() { F::NAN } else { a.max(b) },
                "min" => |a, b, _| a.min(b),
                "max" => |a, b, _| a.max(b),
                "rcp" => |a, _, _| 1.0 / a,
                "sqrt" => |a, _, _| a.sqrt(),
                "rsqrt" => |a, _, _| 1.0 / a.sqrt(),
                "sin" => |a, _, _| a.sin(),
                "cos" => |a, _, _| a.cos(),
                "lg2" => |a, _, _| a.log2(),
                "ex2" => |a, _, _| a.exp2(),
                "tanh" => |a, _, _| a.tanh(),
                _ => return bits(opcode, 8 * size_of::<F>() as u32),
            };
            let saturates = has("sat");
            Some(Arc::new(move |v| {
                let value = inner(f(v, 0), f(v, 1), f(v, 2));
                if !saturates {
                    value.put()
                } else if value.is_none() {
                    0
                } else {
                    value.clamp(0.0, 1.0).put()
                }
            }))
        }
    };
}

arithmetic!(single, f32);
arithmetic!(double, f64);

/// What only moves bits; `width` is the type's.
fn bits(opcode: &str, width: u32) -> Option<Pure> {
    let width = if width > 32 { 64 } else { 32 };
    let sign = 1_u64 << (width - 1);
    let mask = crate::types::mask(width);
    Some(match opcode {
        "abs" => Arc::new(move |v| v[0] & mask & !sign),
        "neg" => Arc::new(move |v| v[0] & mask ^ sign),
        "copysign" => Arc::new(move |v| v[0] & sign | v[1] & mask & !sign),
        "selp" => Arc::new(move |v| if v[2] & 1 == 1 { v[0] } else { v[1] } & mask),
        "mov" => Arc::new(move |v| v[0] & mask),
        _ => return None,
    })
}

/// The instruction's function, or `None` if it is not simulated.
pub(crate) fn function(opcode: &str, modifiers: &[&str], ty: Type) -> Option<Pure> {
    if let Some(toward) = Toward::named(modifiers) {
        return if ty.bits == 32 && !modifiers.contains(&"sat") { directed(opcode, toward) } else { None };
    }
    if ty.bits == 64 { double(opcode, modifiers) } else { single(opcode, modifiers) }
}

/// Where a result is rounded to that is not rounded to nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Toward {
    Zero,
    Below,
    Above,
}

impl Toward {
    fn named(modifiers: &[&str]) -> Option<Self> {
        modifiers.iter().find_map(|word| match *word {
            "rz" => Some(Self::Zero),
            "rm" => Some(Self::Below),
            "rp" => Some(Self::Above),
            _ => None,
        })
    }

    /// The `f32` next to `near` that the exact value is rounded to; `off` is how `near` compares with it.
    fn pick(self, near: f32, off: Ordering) -> f32 {
        let down = match self {
            Self::Zero => near > 0.0,
            Self::Below => true,
            Self::Above => false,
        };
        match off {
            Ordering::Greater if down => near.next_down(),
            Ordering::Less if !down => near.next_up(),
            _ => near,
        }
    }

    /// The sum of two numbers, rounded once.
    fn sum(self, one: f64, other: f64) -> f32 {
        let sum = one + other;
        // Knuth's: what the sum in `f64` lost.
        let part = sum - one;
        let lost = (one - (sum - part)) + (other - part);
        let near = sum as f32;
        if near.is_nan() {
            return near;
        }
        let off = f64::from(near).total_cmp(&sum);
        self.pick(near, if off == Ordering::Equal { 0.0_f64.total_cmp(&(lost + 0.0)) } else { off })
    }
}

/// `f32` arithmetic in the other directions. Products of two `f32` are exact in `f64`.
fn directed(opcode: &str, toward: Toward) -> Option<Pure> {
    let f = |bits: u64| f64::from(f32::from_bits(bits as u32));
    Some(match opcode {
        "add" => Arc::new(move |v| toward.sum(f(v[0]), f(v[1])).put()),
        "sub" => Arc::new(move |v| toward.sum(f(v[0]), -f(v[1])).put()),
        "mul" => Arc::new(move |v| toward.sum(f(v[0]) * f(v[1]), 0.0).put()),
        "fma" | "mad" => Arc::new(move |v| toward.sum(f(v[0]) * f(v[1]), f(v[2])).put()),
        _ => return None,
    })
}

fn value(bits: u64, ty: Type) -> f64 {
    if ty.bits == 64 { <f64 as Float>::get(bits) } else { <f32 as Float>::get(bits).double() }
}

fn stored(value: f64, ty: Type) -> u64 {
    if ty.bits == 64 { value.put() } else { (value as f32).put() }
}

/// The comparison that `setp` makes.
pub(crate) fn compare(order: &str, ty: Type) -> Option<Pure> {
    // Those that end in `u` hold where one is no number.
    let (order, unordered) = match order {
        "num" | "nan" => (order, false),
        _ => order.strip_suffix('u').map_or((order, false), |order| (order, true)),
    };
    let test: fn(f64, f64) -> bool = match order {
        "eq" => |a, b| a == b,
        "ne" => |a, b| !a.is_nan() && !b.is_nan() && a != b,
        "lt" => |a, b| a < b,
        "le" => |a, b| a <= b,
        "gt" => |a, b| a > b,
        "ge" => |a, b| a >= b,
        "num" => |a, b| !a.is_nan() && !b.is_nan(),
        "nan" => |a, b| a.is_nan() || b.is_nan(),
        _ => return None,
    };
    Some(Arc::new(move |v| {
        let (a, b) = (value(v[0], ty), value(v[1], ty));
        u64::from(test(a, b) || unordered && (a.is_nan() || b.is_nan()))
    }))
}

/// `testp`.
pub(crate) fn test(modifiers: &[&str], ty: Type) -> Option<Pure> {
    let test: fn(f64) -> bool = match modifiers.first().copied()? {
        "finite" => f64::is_finite,
        "infinite" => f64::is_infinite,
        "number" => |a| !a.is_nan(),
        "notanumber" => f64::is_nan,
        _ => return None,
    };
    Some(Arc::new(move |v| u64::from(test(value(v[0], ty)))))
}

/// `cvt` between any two types.
pub(crate) fn convert(modifiers: &[&str], to: Type, from: Type) -> Option<Pure> {
    let saturates = modifiers.contains(&"sat");
    let rounding = modifiers.iter().copied().find(|word| matches!(*word, "rn" | "rz" | "rm" | "rp" | "rni" | "rzi" | "rmi" | "rpi"));
    let whole: Option<fn(f64) -> f64> = match rounding {
        Some("rni") => Some(f64::round_ties_even),
        Some("rzi") => Some(f64::trunc),
        Some("rmi") => Some(f64::floor),
        Some("rpi") => Some(f64::ceil),
        _ => None,
    };
    match (to.kind, from.kind) {
        (Kind::Predicate, _) | (_, Kind::Predicate) => None,
        (Kind::Float, Kind::Float) => {
            match Toward::named(modifiers) {
                Some(toward) if to.bits == 32 => return Some(Arc::new(move |v| toward.sum(value(v[0], from), 0.0).put())),
                Some(_) => return None,
                None => {}
            }
            Some(Arc::new(move |v| {
                let read = value(v[0], from);
                let value = whole.map_or(read, |whole| whole(read));
                stored(if saturates { value.clamp(0.0, 1.0) } else { value }, to)
            }))
        }
        (Kind::Float, _) if matches!(rounding, Some("rn")) => Some(Arc::new(move |v| {
            let number = from.wide(v[0]);
            if to.bits == 64 { (number as f64).put() } else { (number as f32).put() }
        })),
        (Kind::Float, _) if to.bits == 32 => {
            let toward = Toward::named(modifiers)?;
            Some(Arc::new(move |v| {
                let number = from.wide(v[0]);
                toward.pick(number as f32, (number as f32 as i128).cmp(&number)).put()
            }))
        }
        (Kind::Float, _) => None,
        (_, Kind::Float) => {
            let whole = whole?;
            Some(Arc::new(move |v| {
                let value = whole(value(v[0], from));
                if value.is_nan() { if to.bits == 64 { 1 << 63 } else { 0 } } else { to.extend(to.clamp(value as i128)) }
            }))
        }
        _ if saturates => Some(Arc::new(move |v| to.extend(to.clamp(from.wide(v[0]))))),
        _ => Some(Arc::new(move |v| to.extend(from.wide(v[0]) as u64))),
    }
}
