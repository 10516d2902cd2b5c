//! Addresses of the memory that ledgers map. All ledgers of a process share one range: once other memory is mapped, a driver need not put a second
//! range where it is asked to, and a snapshot is restored at its addresses or not at all.

use super::fault::{Fault, Result};
use crate::driver::mapped::Range;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the range goes: far from where systems, drivers and allocators put theirs.
const PLACE: Range = Range { address: 1 << 44, bytes: 1 << 40 };

static SHARED: Mutex<Addresses> = Mutex::new(Addresses { range: None, taken: BTreeMap::new() });

struct Addresses {
    // As long as something of it is taken.
    range: Option<Range>,
    // Bytes by address.
    taken: BTreeMap<u64, u64>,
}

fn shared() -> MutexGuard<'static, Addresses> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the first addresses with so much room.
///
/// # Errors
/// [`Fault::Name`] if there is not so much room; a failed call of the driver.
pub(super) fn take(bytes: u64) -> Result<u64> {
    let mut shared = shared();
    let range = match shared.range {
        Some(range) => range,
        None => *shared.range.insert(Range::reserve(PLACE)?),
    };
    let mut address = range.address;
    for (&begin, &length) in &shared.taken {
        if bytes <= begin - address {
            break;
        }
        address = begin + length;
    }
    if bytes > range.address + range.bytes - address {
        shared.let_go();
        let all = range.bytes;
        return Err(Fault::Name(format!("the ledgers of a process have addresses for {all} bytes in all; free memory of theirs")));
    }
    shared.taken.insert(address, bytes);
    Ok(address)
}

/// Takes these addresses, each with its bytes, of the range that they were taken from in another process.
///
/// # Errors
/// [`Fault::AddressTaken`] if this process has something else at one of them. None is taken then.
pub(super) fn take_all(wanted: Range, parts: &[(u64, u64)]) -> Result<()> {
    let mut shared = shared();
    if shared.range.is_some_and(|range| range != wanted) {
        shared.let_go();
    }
    match shared.range {
        Some(range) if range == wanted => {}
        Some(_) => return Err(Fault::AddressTaken { wanted: wanted.address }),
        None => {
            let range = Range::reserve(wanted)?;
            if range != wanted {
                let _ = range.free();
                return Err(Fault::AddressTaken { wanted: wanted.address });
            }
            shared.range = Some(range);
        }
    }
    for (nth, &(address, bytes)) in parts.iter().enumerate() {
        if !shared.is_free(wanted, address, bytes) {
            for (before, _) in &parts[..nth] {
                shared.taken.remove(before);
            }
            shared.let_go();
            return Err(Fault::AddressTaken { wanted: address });
        }
        shared.taken.insert(address, bytes);
    }
    Ok(())
}

/// Gives addresses back that nothing is mapped at any more.
pub(super) fn give_back(address: u64) {
    let mut shared = shared();
    shared.taken.remove(&address);
    shared.let_go();
}

/// The range that all is taken from, if something is.
pub(super) fn range() -> Option<Range> {
    shared().range
}

impl Addresses {
    fn is_free(&self, range: Range, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let is_inside = range.address <= address && end <= range.address + range.bytes;
        let before = self.taken.range(..end).next_back();
        is_inside && before.is_none_or(|(&begin, &length)| begin + length <= address)
    }

    /// Lets go of the range if nothing of it is taken. One that the driver does not take back serves the next ledger.
    fn let_go(&mut self) {
        if self.taken.is_empty() && self.range.is_some_and(|range| range.free().is_ok()) {
            self.range = None;
        }
    }
}
