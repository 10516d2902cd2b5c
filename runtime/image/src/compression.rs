//! Decompression under a budget.
//!
//! With `--compress-mode=speed`, and in all older toolkits, `fatbinary` writes a raw LZ4 block. With `size` and
//! `balance`, the default since 13.0, it writes zstd. It writes an LZ4 frame where an entry is too large for the
//! others. The two framed forms begin with a magic that no valid LZ4 block can begin with: 0x04 and 0x28 would be
//! sequences that copy from before the output's beginning.

use std::io::Read;

const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const LZ4_FRAME: &[u8] = b"\x04\x22\x4d\x18";

/// A decoder's own buffers at most, where the input can choose their size: zstd's window, LZ4's largest frame block.
const BUFFERS: usize = 8 << 20;

/// How many more bytes may be decompressed.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(left: usize) -> Self {
        Self { left }
    }

    /// The `size` bytes that `input` stands for.
    ///
    /// # Errors
    /// Says whether the budget or the data is at fault.
    pub(crate) fn decompress(&mut self, input: &[u8], size: u64) -> Result<Vec<u8>, String> {
        let size = usize::try_from(size).ok().filter(|size| *size <= self.left);
        let Some(size) = size else { return Err("more would be decompressed than any compiler writes".into()) };
        self.left -= size;
        let result = if input.starts_with(ZSTD) {
            zstd(input, size)
        } else if input.starts_with(LZ4_FRAME) {
            // Its buffers are allocated whole, however small the frame is.
            self.left = self.left.saturating_sub(BUFFERS);
            read_exactly(lz4_flex::frame::FrameDecoder::new(input), size)
        } else {
            block(input, size)
        };
        if result.is_err() {
            // A frame that belies its size was decoded up to a window's length before that was seen.
            self.left = self.left.saturating_sub(BUFFERS);
        }
        result.map_err(|why| format!("its compressed data is damaged: {why}"))
    }
}

fn block(input: &[u8], size: usize) -> Result<Vec<u8>, String> {
    // The format gives at most 255 bytes of output for one of input. A larger claim is a lie, which is found before
    // anything is allocated.
    if size > input.len().saturating_mul(255) {
        return Err("so few bytes can't stand for so many".into());
    }
    let mut output = Vec::new();
    output.try_reserve_exact(size).map_err(|_| "there is not enough memory for it")?;
    output.resize(size, 0);
    let written = lz4_flex::block::decompress_into(input, &mut output).map_err(|error| error.to_string())?;
    if written == size { Ok(output) } else { Err(format!("{written} bytes came out where {size} were announced")) }
}

fn zstd(input: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    // The decoder's buffer grows with the output, up to the window.
    decoder.set_max_window_size(size.max(BUFFERS) as u64);
    let decoder = ruzstd::decoding::StreamingDecoder::new_with_decoder(input, decoder).map_err(|error| error.to_string())?;
    read_exactly(decoder, size)
}

fn read_exactly(reader: impl Read, size: usize) -> Result<Vec<u8>, String> {
    let mut output = Vec::new();
    reader.take(size as u64 + 1).read_to_end(&mut output).map_err(|error| error.to_string())?;
    if output.len() == size { Ok(output) } else { Err(format!("{} bytes came out where {size} were announced", output.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn budget() -> Budget {
        Budget::new(1 << 24)
    }

    fn frame(text: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(text).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn zstd_frame(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn each_form_comes_back_and_a_wrong_size_is_an_error() {
        let text = b".version 9.0 .target sm_80 ".repeat(100);
        for compressed in [lz4_flex::block::compress(&text), frame(&text), zstd_frame(&text)] {
            assert_eq!(budget().decompress(&compressed, text.len() as u64), Ok(text.clone()));
            for size in [0, 1, text.len() - 1, text.len() + 1, 1 << 20] {
                assert!(budget().decompress(&compressed, size as u64).is_err(), "{size}");
            }
            // An LZ4 frame ends with a mark of four bytes that nobody misses.
            for cut in 0..compressed.len() - 4 {
                assert!(budget().decompress(&compressed[..cut], text.len() as u64).is_err());
            }
        }
    }

    #[test]
    fn the_budget_is_for_all_entries_together() {
        let text = vec![b'x'; 1 << 16];
        let compressed = zstd_frame(&text);
        let mut budget = Budget::new((1 << 16) + 1);
        assert!(budget.decompress(&compressed, 1 << 16).is_ok());
        assert!(budget.decompress(&compressed, 1 << 16).is_err_and(|why| why.contains("than any compiler writes")));
        assert!(budget.decompress(&compressed, u64::MAX).is_err());
    }

    #[test]
    fn a_bomb_stops_at_its_announced_size() {
        // Blocks of 128 KiB of one byte, four bytes each, without end.
        let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x60];
        bomb.extend([0x02, 0x00, 0x10, b'x'].repeat(10_000));
        assert!(budget().decompress(&bomb, 100_000).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..300), form in 0..3_usize, size in 0..100_000_u64) {
            let mut input = [&[][..], ZSTD, LZ4_FRAME][form].to_vec();
            input.extend(bytes);
            if let Ok(output) = budget().decompress(&input, size) {
                prop_assert_eq!(output.len() as u64, size);
            }
        }
    }
}
