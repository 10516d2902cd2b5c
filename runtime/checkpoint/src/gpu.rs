//! GPUs by their UUIDs, and which takes the place of which.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A GPU's UUID, as `nvidia-smi -L` prints it: `GPU-` and 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Uuid(pub [u8; 16]);

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> Self {
        uuid.to_string()
    }
}

impl TryFrom<String> for Uuid {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for Uuid {
    type Err = Error;

    /// # Errors
    /// [`Error::BadMapping`] if the text is no UUID of a GPU.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::BadMapping(format!("`{text}` {why}; `nvidia-smi -L` lists the UUIDs, such as GPU-5b1f3c9e-0000-1111-2222-333344445555"))
        };
        if text.starts_with("MIG-") {
            return Err(bad("is a MIG instance, which can't be checkpointed"));
        }
        let digits: String = text.strip_prefix("GPU-").unwrap_or(text).chars().filter(|character| *character != '-').collect();
        if digits.len() != 32 || !digits.is_ascii() {
            return Err(bad("is no UUID of a GPU"));
        }
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).map_err(|_| bad("is no UUID of a GPU"))?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU-")?;
        for (index, byte) in self.0.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&index) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Which GPU a process goes to for each that it was on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(Vec<(Uuid, Uuid)>);

impl Mapping {
    /// Each process goes back to its GPUs.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// From pairs of an old and a new GPU; no pairs are no mapping.
    ///
    /// # Errors
    /// [`Error::BadMapping`] if a GPU stands twice on one side.
    pub fn new(pairs: Vec<(Uuid, Uuid)>) -> Result<Self> {
        type Side = (&'static str, fn(&(Uuid, Uuid)) -> Uuid);
        let sides: [Side; 2] = [("moved twice", |pair| pair.0), ("the new place of two GPUs", |pair| pair.1)];
        for (what, side) in sides {
            let mut seen = BTreeSet::new();
            if let Some(twice) = pairs.iter().map(side).find(|gpu| !seen.insert(*gpu)) {
                return Err(Error::BadMapping(format!("{twice} is {what}")));
            }
        }
        Ok(Self(pairs))
    }

    /// Whether each process goes back to its GPUs.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The GPU that takes the place of another.
    #[must_use]
    pub fn to(&self, old: Uuid) -> Uuid {
        self.0.iter().find(|(from, _)| *from == old).map_or(old, |(_, to)| *to)
    }

    /// The pairs with one for each GPU of the machine, as the driver wants them: a GPU that is not named stays.
    ///
    /// # Errors
    /// [`Error::BadMapping`] if a GPU is not there, or would have to be for two.
    pub(crate) fn complete(&self, present: &[Uuid]) -> Result<Vec<(Uuid, Uuid)>> {
        if self.is_none() || present.is_empty() {
            return Ok(self.0.clone());
        }
        if let Some(absent) = self.0.iter().map(|(_, to)| to).find(|gpu| !present.contains(gpu)) {
            return Err(Error::BadMapping(format!("this machine has no {absent}; `nvidia-smi -L` lists its GPUs")));
        }
        let mut pairs = self.0.clone();
        pairs.extend(present.iter().filter(|gpu| !self.0.iter().any(|(from, _)| from == *gpu)).map(|gpu| (*gpu, *gpu)));
        // A GPU that stays may be the new place of another: then both must be named.
        Self::new(pairs).map(|mapping| mapping.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "GPU-000102030405060708090a0b0c0d0e0f";
    const B: &str = "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f";

    fn uuid(text: &str) -> Uuid {
        text.parse().expect("a UUID")
    }

    #[test]
    fn a_uuid_is_read_as_it_is_printed() {
        assert_eq!(uuid(A).to_string(), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(uuid(&uuid(B).to_string()), uuid(B));
        for bad in [
            "",
            "GPU-",
            "GPU-1",
            "MIG-10111213-1415-1617-1819-1a1b1c1d1e1f",
            "GPU-g0111213-1415-1617-1819-1a1b1c1d1e1f",
            "ä0111213-1415-1617-1819-1a1b1c1d1e1f",
        ] {
            assert!(matches!(bad.parse::<Uuid>(), Err(Error::BadMapping(_))), "{bad}");
        }
    }

    #[test]
    fn a_mapping_names_every_gpu_once_on_each_side() {
        let (a, b) = (uuid(A), uuid(B));
        assert!(Mapping::new(vec![(a, b), (a, a)]).is_err());
        assert!(Mapping::new(vec![(a, b), (b, b)]).is_err());
        let swap = Mapping::new(vec![(a, b), (b, a)]).expect("a swap");
        assert_eq!(swap.complete(&[a, b]).expect("both are there").len(), 2);
        assert!(swap.complete(&[a]).is_err());
        // One that stays where another goes.
        assert!(Mapping::new(vec![(a, b)]).expect("a pair").complete(&[a, b]).is_err());
        assert_eq!(Mapping::new(vec![(a, a)]).expect("a pair").complete(&[a, b]).expect("both stay"), [(a, a), (b, b)]);
        assert_eq!(Mapping::none().complete(&[a, b]).expect("none"), []);
    }
}
