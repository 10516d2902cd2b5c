//! Kernels by name: the one that is meant, or an error that says which there are.

use cuinstr_image::Kernel;
use std::fmt;

/// Most names that an error lists.
const LISTED: usize = 12;

/// Longest name that is compared letter by letter, in characters.
const LONGEST: usize = 200;

/// The kernel that a name means.
///
/// In this order: its symbol (`_Z4gemmIfEvPT_`), its signature (`void gemm<float>(float*)`), its name (`gemm<float>`), its name without template
/// arguments (`gemm`). The first of these that any kernel has decides.
///
/// # Errors
/// If no kernel has it, or several have.
///
/// # Examples
/// ```
/// use cuinstr_runtime::{image::Kernel, names};
/// let kernels = [Kernel::new("_Z4gemmIfEvPT_"), Kernel::new("saxpy")];
/// assert_eq!(names::find("gemm", &kernels).map(|kernel| kernel.symbol.as_str()), Ok("_Z4gemmIfEvPT_"));
/// let error = names::find("saxpi", &kernels).unwrap_err();
/// assert_eq!(error.to_string(), "unknown kernel \"saxpi\": did you mean \"saxpy\"? the module has: gemm<float>, saxpy");
/// ```
pub fn find<'a>(asked: &str, kernels: &'a [Kernel]) -> Result<&'a Kernel, UnknownKernel> {
    let ways: [fn(&Kernel) -> &str; 4] = [|kernel| &kernel.symbol, |kernel| &kernel.signature, |kernel| &kernel.name, plain];
    for way in ways {
        let mut meant = kernels.iter().filter(|kernel| way(kernel) == asked);
        match (meant.next(), meant.next()) {
            (None, _) => {}
            (Some(kernel), None) => return Ok(kernel),
            (Some(_), Some(_)) => {
                let meant = kernels.iter().filter(|kernel| way(kernel) == asked);
                let names = meant.map(|kernel| kernel.signature.clone()).collect();
                return Err(UnknownKernel { asked: asked.to_owned(), several: true, nearest: None, names });
            }
        }
    }
    let names: Vec<String> = kernels.iter().map(|kernel| shown(kernel, kernels).to_owned()).collect();
    let nearest = nearest(asked, names.iter().map(String::as_str).chain(kernels.iter().map(plain))).map(str::to_owned);
    Err(UnknownKernel { asked: asked.to_owned(), several: false, nearest, names })
}

/// A name that no kernel of a module has, or that several have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownKernel {
    /// The name asked for.
    pub asked: String,
    /// Whether the name is right but means each of `names`.
    pub several: bool,
    /// The name that may have been meant.
    pub nearest: Option<String>,
    /// The names that there are.
    pub names: Vec<String>,
}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, several, nearest, names } = self;
        if *several {
            write!(f, "several kernels are called {asked:?}; give one's signature: ")?;
        } else {
            write!(f, "unknown kernel {asked:?}: ")?;
            if names.is_empty() {
                return f.write_str("the module has none");
            }
            if let Some(nearest) = nearest {
                write!(f, "did you mean {nearest:?}? ")?;
            }
            f.write_str("the module has: ")?;
        }
        f.write_str(&names[..names.len().min(LISTED)].join(", "))?;
        if names.len() > LISTED { write!(f, " and {} more", names.len() - LISTED) } else { Ok(()) }
    }
}

/// The name nearest to the one asked for, if one is near: at most a third of its letters differ, where swapped neighbours count once and
/// upper or lower case does not.
pub fn nearest<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |name: &str| name.chars().take(LONGEST).flat_map(char::to_lowercase).collect::<Vec<_>>();
    let asked = letters(asked);
    let near = asked.len().div_ceil(3);
    let candidates = names.into_iter().map(|name| (distance(&asked, &letters(name)), name));
    candidates.filter(|(distance, _)| *distance <= near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Letters to insert, delete, replace or swap with the next.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

/// The shortest name that tells a kernel from the others.
fn shown<'a>(kernel: &'a Kernel, kernels: &[Kernel]) -> &'a str {
    let is_alone = kernels.iter().filter(|other| other.name == kernel.name).take(2).count() == 1;
    if is_alone { &kernel.name } else { &kernel.signature }
}

/// The name without template arguments.
fn plain(kernel: &Kernel) -> &str {
    if kernel.name.ends_with('>') { kernel.name.split('<').next().unwrap_or_default() } else { &kernel.name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEMM_FLOAT: &str = "_Z4gemmIfEvPT_";
    const GEMM_DOUBLE: &str = "_Z4gemmIdEvPT_";

    fn kernels(symbols: &[&str]) -> Vec<Kernel> {
        symbols.iter().map(|symbol| Kernel::new(symbol)).collect()
    }

    fn said(asked: &str, symbols: &[&str]) -> String {
        find(asked, &kernels(symbols)).map_or_else(|error| error.to_string(), |kernel| kernel.symbol.clone())
    }

    #[test]
    fn each_way_to_name_a_kernel_finds_it() {
        let symbols = [GEMM_FLOAT, GEMM_DOUBLE, "saxpy", "_Z4scanPi"];
        for (asked, symbol) in [
            (GEMM_FLOAT, GEMM_FLOAT),
            ("void gemm<double>(double*)", GEMM_DOUBLE),
            ("gemm<float>", GEMM_FLOAT),
            ("saxpy", "saxpy"),
            ("scan", "_Z4scanPi"),
        ] {
            assert_eq!(said(asked, &symbols), symbol);
        }
        assert_eq!(said("gemm", &[GEMM_FLOAT]), GEMM_FLOAT);
        // A kernel's own symbol comes before any other reading.
        assert_eq!(said("scan", &["_Z4scanPi", "scan"]), "scan");
    }

    #[test]
    fn an_error_names_what_there_is() {
        assert_eq!(said("gem", &["gemm"]), "unknown kernel \"gem\": did you mean \"gemm\"? the module has: gemm");
        assert_eq!(
            said("GEMM_tield", &["gemm_tiled", "gemm"]),
            "unknown kernel \"GEMM_tield\": did you mean \"gemm_tiled\"? the module has: gemm_tiled, gemm"
        );
        assert_eq!(said("gem", &[GEMM_FLOAT]), "unknown kernel \"gem\": did you mean \"gemm\"? the module has: gemm<float>");
        assert_eq!(
            said("relu", &["gemm", "_Z4scanPi", "_Z4scanPf"]),
            "unknown kernel \"relu\": the module has: gemm, scan(int*), scan(float*)"
        );
        assert_eq!(said("", &["f"]), "unknown kernel \"\": the module has: f");
        assert_eq!(said("f", &[]), "unknown kernel \"f\": the module has none");
        assert_eq!(
            said("gemm", &[GEMM_FLOAT, GEMM_DOUBLE]),
            "several kernels are called \"gemm\"; give one's signature: void gemm<float>(float*), void gemm<double>(double*)"
        );
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (0..100).map(|index| format!("kernel_{index}")).collect();
        let symbols: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(said("x", &symbols).ends_with("kernel_11 and 88 more"));
    }

    #[test]
    fn distance_counts_letters() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, expected) in [("", "", 0), ("abc", "abc", 0), ("", "abc", 3), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ä", "a", 1)]
        {
            assert_eq!((distance(&letters(a), &letters(b)), distance(&letters(b), &letters(a))), (expected, expected), "{a} {b}");
        }
    }
}
