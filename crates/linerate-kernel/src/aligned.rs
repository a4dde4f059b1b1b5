//! Memory at a multiple of an alignment, as direct I/O wants it.

/// Bytes that begin at a multiple of an alignment.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    /// So many bytes, all 0; the alignment is a power of two.
    ///
    /// # Panics
    /// Where it is none.
    pub fn new(length: usize, alignment: usize) -> Self {
        let memory = vec![0; length + alignment];
        let from = memory.as_ptr().align_offset(alignment);
        Self {
            memory,
            from,
            length,
        }
    }

    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}
