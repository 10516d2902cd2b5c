//! What a launch is told, as the first words of its control block.

use crate::driver;
use crate::fault::DriverFault;
use cudarc::driver::sys;
use cuinstr_abi::control::{ABI_VERSION, Action, ControlBlock, FIRST_LAUNCH};
use std::mem::offset_of;

/// The first words of a control block: what an armed launch is told.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Orders {
    pub(crate) abi_version: u32,
    pub(crate) action: u32,
    pub(crate) launch: u32,
    pub(crate) count_fuel: u32,
    pub(crate) flag: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) budget_cycles: u64,
    pub(crate) fuel: u64,
    pub(crate) host_record: u64,
    pub(crate) record: u64,
}

const _: () = {
    assert!(size_of::<Orders>() == offset_of!(ControlBlock, own_record));
    assert!(offset_of!(Orders, launch) == offset_of!(ControlBlock, launch));
    assert!(offset_of!(Orders, flag) == offset_of!(ControlBlock, flag));
    assert!(offset_of!(Orders, timeout_ns) == offset_of!(ControlBlock, timeout_ns));
    assert!(offset_of!(Orders, record) == offset_of!(ControlBlock, record));
};

impl Orders {
    /// Its 64-bit words.
    pub(crate) const WORDS: usize = size_of::<Self>() / 8;

    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            pair(self.abi_version, self.action),
            pair(self.launch, self.count_fuel),
            self.flag,
            self.timeout_ns,
            self.start_ns,
            self.budget_cycles,
            self.fuel,
            self.host_record,
            self.record,
        ]
    }

    /// Writes those words that are wanted, in the stream's order.
    pub(crate) fn write_some(
        &self,
        stream: sys::CUstream,
        control: u64,
        is_wanted: impl Fn(usize, u64) -> bool,
    ) -> Result<(), DriverFault> {
        let mut chosen = [(0, 0); Self::WORDS];
        let mut count = 0;
        for (index, word) in self.words().into_iter().enumerate().filter(|(index, word)| is_wanted(*index, *word)) {
            chosen[count] = (index, word);
            count += 1;
        }
        driver::write_words(stream, control, &chosen[..count])
    }

    /// A control block's first words before anybody armed it: its own flag, no limit but those compiled in, and a trap.
    pub(crate) const fn unarmed(flag: u64) -> Self {
        Self {
            abi_version: ABI_VERSION,
            action: Action::Trap as u32,
            launch: FIRST_LAUNCH,
            count_fuel: 0,
            flag,
            timeout_ns: 0,
            start_ns: 0,
            budget_cycles: 0,
            fuel: 0,
            host_record: 0,
            record: 0,
        }
    }
}
