//! A launch's buffers in device memory, which can be as they were before it without the host's help.

use cuinstr_gpu_tests::launcher::{Arguments, Ended, Fault, Gpu, Kernel, Memory};
use cuinstr_harness::buffer::{Init, Type, difference, elements};
use cuinstr_harness::header::{Arg, Header};
use std::time::Duration;

/// Longest that copies may take.
const COPIES: Duration = Duration::from_secs(10);
/// A float that differs by more than this, as a part of the larger one, is another number.
const SAME_NUMBER: f64 = 1e-3;
/// One in so many elements may be another number where floats are contracted in another way: a comparison may turn out otherwise.
const OTHERS: usize = 1000;

/// The buffers of a launch.
#[derive(Debug)]
pub struct Buffers {
    words: Vec<(Type, u64)>,
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    ty: Type,
    sorted: bool,
    work: Memory,
    /// What it holds before a launch; nothing stands for zeros.
    kept: Option<Memory>,
}

/// What buffers held after a launch.
#[derive(Debug)]
pub struct Answer(Vec<Memory>);

/// The kernel that compares.
#[derive(Debug)]
pub struct Comparer<'a> {
    /// `probe/compare`.
    pub kernel: &'a Kernel,
    /// Its header.
    pub header: &'a Header,
}

impl Buffers {
    /// Takes memory for a header's arguments, and fills it.
    ///
    /// # Errors
    /// What the driver answered, for one that there is not enough memory.
    pub fn new(gpu: &Gpu, header: &Header) -> Result<Self, String> {
        let mut found = Self { words: Vec::new(), buffers: Vec::new() };
        for arg in &header.args {
            match *arg {
                Arg::Scalar { ty, bits } => found.words.push((ty, bits)),
                Arg::Buffer { ty, count, init, sorted } => {
                    let work = gpu.memory(count * ty.size())?;
                    found.words.push((Type::U64, work.address));
                    let kept = if init == Init::Zero {
                        None
                    } else {
                        let kept = gpu.memory(work.bytes)?;
                        gpu.upload(&init.bytes(ty, count), kept)?;
                        Some(kept)
                    };
                    found.buffers.push(Buffer { ty, sorted, work, kept });
                }
            }
        }
        found.restore(gpu)?;
        drained(gpu)?;
        Ok(found)
    }

    /// Fills them anew, in the order of the kernels' stream.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn restore(&self, gpu: &Gpu) -> Result<(), Fault> {
        self.buffers.iter().try_for_each(|buffer| match buffer.kept {
            Some(kept) => gpu.copy(kept, buffer.work),
            None => gpu.zero(buffer.work),
        })
    }

    /// The arguments of a launch, each as its type and bits; memory goes by its address.
    #[must_use]
    pub fn words(&self) -> &[(Type, u64)] {
        &self.words
    }

    /// The same for [`Gpu::launch`].
    #[must_use]
    pub fn arguments(&self) -> Arguments {
        Arguments::of(self.words.iter().map(|(_, bits)| *bits).collect())
    }

    /// A copy of what they hold.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn answer(&self, gpu: &Gpu) -> Result<Answer, String> {
        let mut copies = Vec::new();
        for buffer in &self.buffers {
            let copy = gpu.memory(buffer.work.bytes)?;
            gpu.copy(buffer.work, copy)?;
            copies.push(copy);
        }
        drained(gpu)?;
        Ok(Answer(copies))
    }

    /// Compares what they hold with an answer. Where floats play a part, nearly all elements must be nearly the same, and what differs
    /// is the note that comes back; elsewhere each bit counts.
    ///
    /// # Errors
    /// What differs, or what the driver answered.
    pub fn compare(&self, gpu: &Gpu, comparer: &Comparer, answer: &Answer, has_floats: bool) -> Result<Option<String>, String> {
        let mut note = None;
        for (index, (buffer, expected)) in self.buffers.iter().zip(&answer.0).enumerate() {
            if comparer.differing(gpu, buffer.work, *expected)? == 0 {
                continue;
            }
            let (found, expected) = (gpu.download(buffer.work)?, gpu.download(*expected)?);
            let told = |what: String| format!("buffer {index}: {what}");
            if !has_floats {
                let Some(other) = difference(&expected, &found, buffer.ty, buffer.sorted) else { continue };
                let (count, first, left, right) = (other.count, other.first, other.left, other.right);
                return Err(told(format!("{count} elements differ, the first is {first}: {right} instead of {left}")));
            }
            let (differing, others) = differences(&expected, &found, buffer.ty);
            let all = found.len() / buffer.ty.size();
            if others > all.div_ceil(OTHERS) {
                return Err(told(format!("{others} of {all} elements are other numbers")));
            }
            note = Some(told(format!("{differing} of {all} elements differ, {others} by more than {SAME_NUMBER}")));
        }
        Ok(note)
    }

    /// Gives all memory back. The kernels must be done with it.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn free(self, gpu: &Gpu) -> Result<(), Fault> {
        self.buffers.iter().flat_map(|buffer| buffer.kept.into_iter().chain([buffer.work])).try_for_each(|memory| gpu.free(memory))
    }
}

impl Answer {
    /// Gives its memory back.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn free(self, gpu: &Gpu) -> Result<(), Fault> {
        self.0.into_iter().try_for_each(|memory| gpu.free(memory))
    }
}

impl Comparer<'_> {
    /// In how many words of four bytes two pieces of memory differ.
    fn differing(&self, gpu: &Gpu, left: Memory, right: Memory) -> Result<u64, String> {
        let count = gpu.memory(8)?;
        gpu.zero(count)?;
        let words = vec![left.address, right.address, left.bytes as u64 / 4, count.address];
        gpu.launch(self.kernel, self.header, &Arguments::of(words))?;
        drained(gpu)?;
        let found = gpu.download(count)?;
        gpu.free(count)?;
        let found: [u8; 8] = found.try_into().map_err(|_| "a count has eight bytes")?;
        Ok(u64::from_le_bytes(found))
    }
}

/// Waits for what the kernels' stream was given.
///
/// # Errors
/// If it takes too long, or what the driver answered.
pub fn drained(gpu: &Gpu) -> Result<(), String> {
    match gpu.wait(COPIES) {
        Ended::Drained => Ok(()),
        Ended::Fault(fault) => Err(fault.to_string()),
        Ended::Running => Err(format!("the stream is not drained within {COPIES:?}")),
    }
}

/// How many elements differ, and how many of these are other numbers.
fn differences(expected: &[u8], found: &[u8], ty: Type) -> (usize, usize) {
    let (mut differing, mut others) = (0, 0);
    for (expected, found) in elements(expected, ty).into_iter().zip(elements(found, ty)) {
        if expected != found {
            differing += 1;
            others += usize::from(!is_same_number(expected, found, ty));
        }
    }
    (differing, others)
}

fn is_same_number(left: u64, right: u64, ty: Type) -> bool {
    let number = |bits: u64| match ty {
        Type::Bf16 => Some(f64::from(f32::from_bits((bits as u32) << 16))),
        Type::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        Type::F64 => Some(f64::from_bits(bits)),
        _ => None,
    };
    match (number(left), number(right)) {
        (Some(left), Some(right)) => (left - right).abs() <= SAME_NUMBER * left.abs().max(right.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_are_nearly_the_same_are_the_same_number_and_integers_are_not() {
        let bytes = |numbers: [f32; 4]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let (left, right) = (bytes([1.0, 2.0, 0.0, 4.0]), bytes([1.0, 2.001, -0.0, 5.0]));
        assert_eq!(differences(&left, &right, Type::F32), (3, 1));
        assert_eq!(differences(&left, &right, Type::U32), (3, 3));
        assert!(!is_same_number(1.0_f64.to_bits(), f64::NAN.to_bits(), Type::F64));
    }
}
