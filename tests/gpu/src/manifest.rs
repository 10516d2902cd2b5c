//! What `gpu-prepare` leaves for `gpu-run`: `.gpu/manifest.json` and the cubins that it names.

use cuinstr::site::{Site, SiteMap};
use cuinstr_harness::fixtures::{Fixture, HangLine};
use cuinstr_harness::variant::Variant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the file's format.
pub const VERSION: u32 = 1;

/// Everything the runner needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// The compiler's build.
    pub compiler: String,
    /// The kernels.
    pub subjects: Vec<Subject>,
    /// Folder that the manifest was read from.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// One kernel with its builds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The file.
    pub fixture: Fixture,
    /// Builds by the name of their variant.
    pub builds: BTreeMap<String, Build>,
    /// Why a variant could not be built.
    pub failures: BTreeMap<String, String>,
}

/// One build.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Build {
    /// File of the cubin in the manifest's folder.
    pub cubin: String,
    /// Mangled name of the kernel.
    pub entry: String,
    /// Digest of the machine code.
    pub code: String,
    /// Site maps of the file and of the headers rewritten with it; empty for a plain build.
    pub site_maps: Vec<SiteMap>,
}

impl Manifest {
    /// Reads a folder's manifest.
    ///
    /// # Errors
    /// If it is not there, or from another version of this crate.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("manifest.json");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error} (run scripts/gpu-prepare)", path.display()))?;
        let mut manifest: Self = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if manifest.version != VERSION {
            return Err(format!("{}: version {} instead of {VERSION}", path.display(), manifest.version));
        }
        folder.clone_into(&mut manifest.folder);
        Ok(manifest)
    }

    /// Writes it into its folder.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self) -> Result<(), String> {
        let path = self.folder.join("manifest.json");
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The kernel of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn subject(&self, name: &str) -> Result<&Subject, String> {
        let found = self.subjects.iter().find(|subject| subject.fixture.name == name);
        found.ok_or_else(|| format!("there is no kernel {name} in the manifest"))
    }
}

impl Subject {
    /// A build of this kernel.
    ///
    /// # Errors
    /// Says why it could not be built.
    pub fn build(&self, variant: Variant) -> Result<&Build, String> {
        self.builds.get(variant.name).ok_or_else(|| {
            let why = self.failures.get(variant.name).map_or("it was not asked for", String::as_str);
            format!("{} has no build `{}`: {why}", self.fixture.name, variant.name)
        })
    }
}

/// A site with the file that it lies in.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Project-relative path.
    pub file: &'a str,
    /// The site.
    pub site: &'a Site,
}

impl Build {
    /// The site of an id.
    #[must_use]
    pub fn site(&self, id: u64) -> Option<Found<'_>> {
        let same = |site: &&Site| u64::from_str_radix(site.id.trim_start_matches("0x"), 16) == Ok(id);
        self.site_maps.iter().find_map(|map| map.sites.iter().find(same).map(|site| Found { file: &map.file, site }))
    }
}

impl Found<'_> {
    /// Whether the site is the hang that the source marks. A loop in a macro's body stands for every use of the macro.
    #[must_use]
    pub fn is(&self, hang: &HangLine) -> bool {
        let there = (self.site.line == hang.line || hang.inside.contains(&self.site.line))
            && Path::new(self.file).file_name().is_some_and(|file| *file == *hang.file);
        let within_macro = self.site.function.strip_prefix("#define ").is_some_and(|name| hang.text.contains(name.trim()));
        there || within_macro
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr::site::{Form, Kind};

    fn build() -> Build {
        let site = |id: &str, function: &str, line| Site {
            id: id.into(),
            kind: Kind::While,
            function: function.into(),
            file: None,
            line,
            column: 5,
            form: Form::CountDown,
            why: None,
            waiver: None,
        };
        let sites = vec![site("00000000000000a2", "f", 7), site("00000000000000a4", "#define SPIN", 2)];
        let map =
            SiteMap { version: 1, file: "kernels/hang/a.cu".into(), hash: String::new(), polls_each: false, counts_fuel: false, sites };
        Build { cubin: String::new(), entry: String::new(), code: String::new(), site_maps: vec![map] }
    }

    #[test]
    fn a_site_is_found_by_its_number_and_compared_with_the_marked_line() {
        let hang = |line, text: &str| HangLine { file: "a.cu".into(), line, inside: vec![9], text: text.into() };
        let build = build();
        let found = build.site(0xa2).expect("the map holds it");
        assert!(found.is(&hang(7, "while (x) // HANG")));
        assert!(!found.is(&hang(8, "while (x) // HANG")));
        assert!(build.site(0xa4).expect("the map holds it").is(&hang(30, "SPIN(x); // HANG")));
        assert!(build.site(0xa6).is_none());
    }
}
