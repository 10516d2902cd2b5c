//! Any bytes as a file of the CUDA toolchain's: no panic, in time and memory that the input bounds.

#![no_main]

use cuinstr_image::{Content, Image, Kernel};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let first = cuinstr_image::read(bytes);
    assert_eq!(first, cuinstr_image::read(bytes), "same bytes, another result");
    let Ok(image) = first else { return };
    assert!(!image.parts.is_empty(), "an image without parts");
    let sizes = image.parts.iter().map(|part| match &part.content {
        Content::Ptx(text) => text.len(),
        Content::Code(code) => code.len(),
        Content::Intermediate | Content::Unread(_) => 0,
    });
    // Bytes that are no UTF-8 become three each.
    assert!(sizes.sum::<usize>() <= 3 * (bytes.len() * (Image::EXPANSION + 1) + Image::ALLOWANCE), "a bomb");
    for kernel in image.kernels() {
        assert_eq!(Kernel::new(&kernel.symbol), kernel);
    }
    assert!(image.without_ptx().count() <= image.parts.len());
});
