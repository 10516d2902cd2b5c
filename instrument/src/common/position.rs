//! Lines and columns of offsets.

/// Starts of lines.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Reads a text once.
    #[must_use]
    pub fn new(source: &[u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', source).map(|at| at as u32 + 1));
        Self { starts }
    }

    /// Line and column of an offset, both from 1, the column in bytes.
    #[must_use]
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start as usize <= offset).max(1);
        (line as u32, offset as u32 - self.starts[line - 1] + 1)
    }
}
