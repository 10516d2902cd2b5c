//! Where a piece of device code lies, and what it was compiled for.

use std::fmt;

/// Where a piece lies in a file. Displayed as `member.o: .nv_fatbin: container 0, entry 1`, without what does not apply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Member of a static library, and its number, from 0: names may repeat.
    pub member: Option<(usize, String)>,
    /// Section of a host's file.
    pub section: Option<String>,
    /// Number of the fat binary in that section or file, from 0.
    pub container: Option<usize>,
    /// Number of the entry in that fat binary, from 0.
    pub entry: Option<usize>,
}

impl Place {
    /// Whether it lies among code that still waits for the device linker, or of which the linked result lies elsewhere in the file.
    #[must_use]
    pub fn is_relocatable(&self) -> bool {
        self.section.as_deref().is_some_and(|section| section.starts_with("__nv_relfatbin"))
    }

    /// The fat binary around it: a name that no other one of the file has.
    #[must_use]
    pub fn container(&self) -> String {
        format!("{:?}", self.container_key())
    }

    pub(crate) fn container_key(&self) -> (Option<usize>, Option<String>, Option<usize>) {
        (self.member.as_ref().map(|(index, _)| *index), self.section.clone(), self.container)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = Vec::new();
        pieces.extend(self.member.as_ref().map(|(_, name)| name.clone()));
        pieces.extend(self.section.clone());
        match (self.container, self.entry) {
            (Some(container), Some(entry)) => pieces.push(format!("container {container}, entry {entry}")),
            (Some(container), None) => pieces.push(format!("container {container}")),
            (None, _) => {}
        }
        if pieces.is_empty() { f.write_str("the file") } else { f.write_str(&pieces.join(": ")) }
    }
}

/// An architecture: `80`, `90a`, `100f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Compute capability times ten.
    pub number: u32,
    /// `a` for code that runs on this architecture only, `f` for its family, where that is known.
    pub suffix: Option<char>,
}

impl Arch {
    /// From a name such as `sm_90a` or `compute_80`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
        let suffix = rest.chars().next_back().filter(|c| matches!(c, 'a' | 'f'));
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten().map(|number| Self { number, suffix })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_is_a_number_and_perhaps_a_letter() {
        assert_eq!(Arch::from_name("sm_90a"), Some(Arch { number: 90, suffix: Some('a') }));
        assert_eq!(Arch::from_name("compute_120").map(|arch| arch.to_string()).as_deref(), Some("120"));
        for name in ["sm_", "sm_a", "sm_+9", "80", "sm_99999", "lto_80"] {
            assert_eq!(Arch::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_place_says_what_applies() {
        let place = Place { member: Some((1, "a.o".into())), section: Some(".nv_fatbin".into()), container: Some(0), entry: Some(2) };
        assert_eq!(place.to_string(), "a.o: .nv_fatbin: container 0, entry 2");
        assert_eq!(Place::default().to_string(), "the file");
    }
}
