//! Registers: every thread of a block has its own copy of a register buffer.

/// A register buffer of all threads.
pub(crate) struct Registers {
    len: usize,
    values: Vec<u64>,
    /// One more than the statement that wrote it last; 0 for undefined.
    written: Vec<u32>,
}

impl Registers {
    /// Undefined registers, `len` scalars for each of so many threads.
    pub(crate) fn new(len: usize, n_threads: usize) -> Self {
        Registers { len, values: vec![0; len * n_threads], written: vec![0; len * n_threads] }
    }

    fn slot(&self, thread: usize, at: i64) -> Option<usize> {
        let at = usize::try_from(at).ok().filter(|at| *at < self.len)?;
        Some(thread * self.len + at)
    }

    /// The value; `Ok(None)` where undefined, `Err` outside the buffer.
    #[inline]
    pub(crate) fn read(&self, thread: usize, at: i64) -> Result<Option<u64>, ()> {
        let slot = self.slot(thread, at).ok_or(())?;
        Ok((self.written[slot] != 0).then(|| self.values[slot]))
    }

    /// Writes; `Err` outside the buffer.
    #[inline]
    pub(crate) fn write(
        &mut self,
        thread: usize,
        at: i64,
        value: u64,
        site: u32,
    ) -> Result<(), ()> {
        let slot = self.slot(thread, at).ok_or(())?;
        self.values[slot] = value;
        self.written[slot] = site + 1;
        Ok(())
    }

    /// The statement that wrote it last.
    pub(crate) fn writer(&self, thread: usize, at: i64) -> Option<u32> {
        self.slot(thread, at).and_then(|s| self.written[s].checked_sub(1))
    }

    /// Makes a thread's registers undefined again.
    pub(crate) fn clear(&mut self, thread: usize) {
        self.written[thread * self.len..(thread + 1) * self.len].fill(0);
    }
}
