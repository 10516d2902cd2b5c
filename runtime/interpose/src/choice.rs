//! What the driver would take out of a fat binary, and whether PTX may stand in for it.

use cuinstr_image::{Arch, Is};

/// Which entry's PTX stands for what the driver would take on a GPU of this architecture (its compute capability times ten); else why none does.
///
/// The driver takes machine code if there is some that the GPU runs, and else compiles PTX. PTX of another architecture
/// may be other code (`__CUDA_ARCH__`). So PTX replaces machine code only where both were made for the same
/// architecture.
pub(crate) fn ptx_for(entries: &[(Is, Option<Arch>)], gpu: u32) -> Result<usize, &'static str> {
    let known = || entries.iter().enumerate().filter_map(|(index, (is, arch))| Some((index, *is, (*arch)?)));
    let best =
        |is: Is| known().filter(|(_, what, arch)| *what == is && runs(*arch, is, gpu)).map(|(_, _, arch)| (arch.number, arch.suffix)).max();
    let (number, suffix) = match best(Is::Code) {
        Some(code) => code,
        None => best(Is::Ptx).ok_or("it holds nothing for this GPU")?,
    };
    let mut made = known().filter(|(_, is, arch)| *is == Is::Ptx && arch.number == number && arch.suffix == suffix);
    match (made.next(), made.next()) {
        (Some((index, ..)), None) => Ok(index),
        (None, _) => Err("it holds machine code for this GPU, and no PTX of the same architecture"),
        (Some(_), Some(_)) => Err("it holds several pieces of PTX for this GPU"),
    }
}

/// Whether code of this architecture can run on the GPU.
fn runs(arch: Arch, is: Is, gpu: u32) -> bool {
    let is_same_major = arch.number / 10 == gpu / 10;
    match (arch.suffix, is) {
        (Some('a'), _) => arch.number == gpu,
        (Some(_), _) => is_same_major && arch.number <= gpu,
        (None, Is::Ptx) => arch.number <= gpu,
        (None, _) => is_same_major && arch.number <= gpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(entries: &str, gpu: u32) -> Result<usize, &'static str> {
        let entry = |word: &str| {
            let arch = Arch::from_name(word).unwrap_or_else(|| panic!("{word}"));
            (if word.starts_with("sm_") { Is::Code } else { Is::Ptx }, Some(arch))
        };
        ptx_for(&entries.split_whitespace().map(entry).collect::<Vec<_>>(), gpu)
    }

    #[test]
    fn ptx_stands_only_for_machine_code_of_its_own_architecture() {
        // nvcc's default: the machine code is for an older GPU, so the driver compiles the PTX.
        assert_eq!(chosen("sm_75 compute_75", 90), Ok(1));
        assert_eq!(chosen("compute_90 sm_90", 90), Ok(0));
        assert_eq!(chosen("sm_80 compute_80", 86), Ok(1));
        for other in ["sm_90 compute_80", "sm_90", "sm_80 sm_90 compute_80", "sm_90a compute_90", "compute_90 compute_90"] {
            assert!(chosen(other, 90).is_err(), "{other}");
        }
    }

    #[test]
    fn the_driver_takes_the_newest_that_runs() {
        assert_eq!(chosen("compute_70 compute_80 compute_100", 90), Ok(1));
        assert_eq!(chosen("sm_80 compute_80 sm_86 compute_86", 89), Ok(3));
        assert_eq!(chosen("sm_90a compute_90a", 90), Ok(1));
        assert_eq!(chosen("compute_100f sm_100f", 103), Ok(0));
        assert!(chosen("compute_90a", 100).is_err());
        assert!(chosen("compute_120", 90).is_err());
        assert!(chosen("", 90).is_err());
    }
}
