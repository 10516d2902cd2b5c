//! Makes an overlay: finds the files that a source names, rewrites them, and puts them into the tree.

use super::{HOST_PRELUDE, Missed, PRELUDE};
use crate::launcher::cache::Cache;
use crate::launcher::error::Error;
use crate::launcher::foreign::Foreign;
use crate::launcher::host_runtime;
use crate::launcher::plan::Plan;
use crate::launcher::preprocess::{BUILT_IN, Cuda, LIBRARIES, is_runtime_header};
use crate::launcher::record;
use crate::launcher::rewritten_file::{Facts, Maker, RewrittenFile};
use crate::launcher::session::Knowledge;
use crate::launcher::words;
use crate::prelude::{self, UnitTraits};
use crate::project::include::{self, Reference, edited};
use cuinstr_abi::sites::SiteMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};

/// A file that is on its way into the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    root: usize,
    rest: PathBuf,
}

/// A file of the tree before it is rewritten.
struct FoundFile {
    /// Its path without any links.
    target: PathBuf,
    /// As compilers will name it.
    spelled: PathBuf,
    bytes: Vec<u8>,
    /// Names of included files that others take the place of.
    edits: Vec<(std::ops::Range<usize>, Vec<u8>)>,
    /// Whether other units may read it, too.
    shared: bool,
}

/// A folder of the search order.
#[derive(Debug, Clone, Copy)]
enum Searched {
    Root(usize),
    /// Not looked into: what is found here is none of ours.
    System(usize),
}

pub(super) struct Builder<'a> {
    folder: &'a Path,
    knowledge: &'a Knowledge,
    plan: Plan,
    quote: Vec<Searched>,
    include: Vec<Searched>,
    systems: Vec<Searched>,
    system_folders: Vec<PathBuf>,
    /// Files by their paths without links in folders, and those that they are without any links.
    files: BTreeMap<PathBuf, PathBuf>,
    /// Texts of the latter.
    texts: BTreeMap<PathBuf, Vec<u8>>,
    /// Folders to make, and links between them.
    folders: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
    queue: Vec<Place>,
    found: Vec<FoundFile>,
    angled: BTreeMap<Vec<u8>, Option<Place>>,
    traits: UnitTraits,
    /// Headers of others, whose macros may mark the user's functions.
    foreign: Foreign,
    /// Whether a source may name files that are not known from its text.
    has_others: bool,
    /// Files that are read before the prelude, by their paths without links.
    early: &'a [OsString],
    /// Where the text of a file with `#pragma once` came from first, by the time of its last change and its bytes.
    once: BTreeMap<(i64, Vec<u8>), usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(folder: &'a Path, knowledge: &'a Knowledge, call: &Cuda, early: &'a [OsString]) -> Self {
        let mut builder = Self {
            folder,
            knowledge,
            plan: Plan::default(),
            quote: Vec::new(),
            include: Vec::new(),
            systems: Vec::new(),
            system_folders: Vec::new(),
            files: BTreeMap::new(),
            texts: BTreeMap::new(),
            folders: BTreeSet::new(),
            links: BTreeMap::new(),
            queue: Vec::new(),
            found: Vec::new(),
            angled: BTreeMap::new(),
            traits: UnitTraits::default(),
            foreign: Foreign::new(&call.system),
            has_others: false,
            early,
            once: BTreeMap::new(),
        };
        let toolkit = builder.toolkit(call);
        let given: Vec<PathBuf> = call.system.iter().filter_map(|folder| Path::new(folder).canonicalize().ok()).collect();
        let foreign = given.iter().filter(|folder| !toolkit.iter().any(|own| folder.starts_with(own)));
        builder.plan.foreign = foreign.cloned().map(PathBuf::into_os_string).collect();
        let system: Vec<PathBuf> = toolkit.iter().cloned().chain(given).collect();
        builder.plan.system = system.iter().cloned().map(PathBuf::into_os_string).collect();
        if knowledge.settings.system_headers {
            let toolkits = system.iter().filter(|folder| folder.join("cuda_runtime.h").is_file());
            let parts = toolkits.flat_map(|folder| LIBRARIES.iter().map(move |name| folder.join(name)));
            builder.plan.libraries = parts.filter_map(|path| path.canonicalize().ok()).map(PathBuf::into_os_string).collect();
        }
        builder.quote = call.quote.iter().map(|folder| builder.searched(folder, &toolkit)).collect();
        builder.include = call.include.iter().map(|folder| builder.searched(folder, &toolkit)).collect();
        builder.systems = call.system.iter().map(|folder| builder.searched(folder, &toolkit)).collect();
        builder
    }

    /// Folders of the system and of the toolkit: that of the nvcc that runs, and the one whose `cuda_runtime.h` this compilation reads.
    fn toolkit(&self, call: &Cuda) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = BUILT_IN.iter().map(PathBuf::from).collect();
        if let Some(toolkit) =
            Path::new(&self.knowledge.nvcc).canonicalize().ok().and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()))
        {
            folders.extend(["include", "nvvm/include"].map(|name| toolkit.join(name)));
            let targets = fs::read_dir(toolkit.join("targets")).into_iter().flatten().flatten();
            folders.extend(targets.map(|target| target.path().join("include")));
        }
        let runtime = call.include.iter().find(|folder| Path::new(folder).join("cuda_runtime.h").is_file());
        folders.extend(runtime.map(PathBuf::from).filter(|folder| folder.join("crt/host_config.h").is_file()));
        folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
    }

    fn searched(&mut self, spelled: &OsStr, toolkit: &[PathBuf]) -> Searched {
        match Path::new(spelled).canonicalize() {
            // A folder of `-isystem` may hold files of the user's.
            Ok(real) if real.is_dir() && (!toolkit.iter().any(|folder| real.starts_with(folder)) || self.holds_libraries(&real)) => {
                Searched::Root(self.root_of(spelled, real))
            }
            other => {
                self.system_folders.push(other.unwrap_or_else(|_| PathBuf::from(spelled)));
                Searched::System(self.system_folders.len() - 1)
            }
        }
    }

    /// Whether libraries that are rewritten lie in the folder, or it in one.
    fn holds_libraries(&self, folder: &Path) -> bool {
        let mut libraries = self.plan.libraries.iter().map(Path::new);
        libraries.any(|library| folder.starts_with(library) || library.parent() == Some(folder))
    }

    /// The number of the folder, which a path spells like this.
    fn root_of(&mut self, spelled: &OsStr, real: PathBuf) -> usize {
        let known = self.plan.roots.iter().position(|(root, _)| root == spelled);
        known.unwrap_or_else(|| {
            self.plan.roots.push((spelled.to_owned(), real.into_os_string()));
            self.plan.roots.len() - 1
        })
    }

    /// A file by its path on the command line.
    fn named(&mut self, path: &OsStr) -> Option<Place> {
        let path = Path::new(path);
        let folder = path.parent()?;
        let real = if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.canonicalize().ok()?;
        let root = self.root_of(folder.as_os_str(), real);
        Some(Place { root, rest: PathBuf::from(path.file_name()?) })
    }

    fn root(&self, number: usize) -> &Path {
        Path::new(&self.plan.roots[number].1)
    }

    fn searched_root(&self, folder: &Searched) -> Option<PathBuf> {
        if let Searched::Root(root) = *folder { Some(self.root(root).to_owned()) } else { None }
    }

    pub(super) fn build(mut self, call: &Cuda, missed: &[Missed]) -> Result<Plan, Error> {
        let failed = |error: io::Error| Error::io("can't write", self.folder, &error);
        let main = self.named(&call.main);
        let Some(main) = main.filter(|place| self.root(place.root).join(&place.rest).is_file()) else {
            return Err(Error { code: 1, ..Error::new(format!("`{}` can't be read", Path::new(&call.main).display()), "check its path") });
        };
        self.plan.main = (main.root, main.rest.clone().into_os_string());
        self.plan.own.extend(self.file(&main).map(PathBuf::into_os_string));
        let mut maker = Maker::new(&self.knowledge.settings, Cache::new(Path::new(&self.knowledge.cache)));
        self.read(&main, false);
        for name in &call.forced {
            let place = if is_runtime_header(name) { None } else { self.forced(name) };
            self.queue.extend(place.clone());
            self.plan.forced.push(place.map(|place| (place.root, place.rest.into_os_string())));
        }
        for file in missed {
            if let Ok(real) = Path::new(if file.root.is_empty() { OsStr::new(".") } else { &file.root }).canonicalize() {
                let root = self.root_of(&file.root, real);
                self.queue.push(Place { root, rest: PathBuf::from(&file.rest) });
            }
        }
        while let Some(place) = self.queue.pop() {
            self.read(&place, true);
        }
        let own = self.found.iter().filter(|file| !self.plan.is_system(&file.target));
        let named: Vec<(String, &[u8])> = own.map(|file| (file.target.to_string_lossy().into_owned(), &file.bytes[..])).collect();
        let own: Vec<&[u8]> = named.iter().map(|(_, bytes)| *bytes).collect();
        let named: Vec<(&str, &[u8])> = named.iter().map(|(name, bytes)| (&**name, *bytes)).collect();
        maker.learn(&named, &self.foreign.texts, &call.definitions());
        maker.give(&own, &self.foreign.texts, call.given());
        for file in std::mem::take(&mut self.found) {
            self.make(file, &mut maker)?;
        }
        self.tell_of_words(call);
        self.finish().map_err(failed)
    }

    /// Tells with the source of words of the language that the command line makes macros of.
    fn tell_of_words(&mut self, call: &Cuda) {
        let strict = self.knowledge.settings.strict;
        let said = words::told(&call.main.to_string_lossy(), &call.definitions(), strict);
        if let Some((_, facts)) = self.plan.files.iter_mut().find(|(path, _)| self.plan.own.first() == Some(path)) {
            facts.refused |= strict && !said.is_empty();
            facts.said.push_str(&said);
        }
    }

    /// Takes a file into the tree, with all that it names.
    fn read(&mut self, place: &Place, shared: bool) {
        let Some(file) = self.enter(place) else { return };
        if self.files.contains_key(&file) {
            return;
        }
        let Some(target) = file.canonicalize().ok().filter(|target| target.is_file()) else { return };
        // Its reader will say that it can't be read, if it has one.
        let Ok(bytes) = fs::read(&target) else { return };
        let mut edits = Vec::new();
        let names = include::names(&bytes);
        self.has_others |= names.others;
        for reference in names.references {
            if let Some(found) = self.find(place, &bytes[reference.name.clone()], &reference) {
                if bytes[reference.name.start] == b'/' {
                    let name = self.folder.join(format!("r{}", found.root)).join(&found.rest);
                    edits.push((reference.name.clone(), name.into_os_string().into_vec()));
                }
                self.queue.push(found);
            } else {
                self.foreign.read(file.parent(), &bytes[reference.name.clone()]);
            }
        }
        self.files.insert(file, target.clone());
        // The same file by another name is the same text.
        if self.texts.insert(target.clone(), Vec::new()).is_some() {
            return;
        }
        let spelled = Path::new(&self.plan.roots[place.root].0).join(&place.rest);
        self.found.push(FoundFile { target, spelled, bytes, edits, shared });
    }

    /// Rewrites a file of the tree.
    fn make(&mut self, file: FoundFile, maker: &mut Maker) -> Result<(), Error> {
        let FoundFile { target, spelled, bytes, edits, shared } = file;
        let is_system = self.plan.is_system(&target);
        let mut made = if is_system { RewrittenFile::default() } else { maker.make(&spelled, &bytes, &edits, shared)? };
        if self.plan.libraries.iter().any(|library| target.starts_with(library)) {
            // Gaps in libraries are nothing that the user could mend.
            made.facts.said.clear();
            made.facts.refused = false;
        }
        if made.facts.rewritten && self.early.iter().any(|early| target == Path::new(early)) {
            let what = if self.knowledge.settings.strict { "error" } else { "warning" };
            let said = format!(
                "{}: {what}: cuinstr did not rewrite this file: a header of the toolkit's or an -Xcompiler -include reads it before there are polls\n",
                spelled.display()
            );
            made = RewrittenFile {
                facts: Facts { said, refused: self.knowledge.settings.strict, ..Facts::default() },
                text: edited(&bytes, &[], &edits),
            };
        }
        if made.facts.rewritten && memchr::memmem::find(&bytes, b"once").is_some() {
            // gcc takes two files for one, of which it reads the first only, if their last change and their text are the same. Ours must stay the same,
            // though their sites have each a number of its own.
            let changed = fs::metadata(&target).map_or(0, |metadata| metadata.mtime());
            let first = *self.once.entry((changed, bytes.clone())).or_insert(self.plan.files.len());
            if let Some((path, facts)) = self.plan.files.get(first)
                && let Some(text) = self.texts.get(Path::new(path))
            {
                made.facts.sites.clone_from(&facts.sites);
                made.text = Some(text.clone());
            }
        }
        self.traits.virtuals |= made.facts.virtuals;
        self.traits.barriers |= made.facts.barriers;
        self.traits.dynamic |= made.facts.dynamic;
        self.traits.bytes = self.traits.bytes.saturating_add(made.facts.shared_bytes);
        self.plan.has_prelude |= made.facts.rewritten;
        self.plan.files.push((target.clone().into_os_string(), made.facts));
        self.texts.insert(target, made.text.unwrap_or(bytes));
        Ok(())
    }

    /// Makes the folders on the way to the file, links as links, and gives its path without them.
    fn enter(&mut self, place: &Place) -> Option<PathBuf> {
        let mut folder = self.root(place.root).to_owned();
        self.folders.insert(folder.clone());
        let mut parts = place.rest.components().peekable();
        while let Some(part) = parts.next() {
            match part {
                Component::Normal(name) if parts.peek().is_none() => return Some(folder.join(name)),
                Component::Normal(name) => {
                    let next = folder.join(name);
                    let target = next.canonicalize().ok().filter(|target| target.is_dir())?;
                    if next.is_symlink() {
                        self.links.insert(next, target.clone());
                    }
                    folder = target;
                }
                Component::ParentDir => folder = folder.parent()?.to_owned(),
                _ => {}
            }
            self.folders.insert(folder.clone());
        }
        None
    }

    /// The file that a name in another file leads to, in the order of the preprocessor's own search.
    fn find(&mut self, from: &Place, name: &[u8], reference: &Reference) -> Option<Place> {
        let path = Path::new(OsStr::from_bytes(name));
        if path.is_absolute() {
            // One that the system's compilers find as well needs no overlay.
            return self.named(path.as_os_str()).filter(|place| self.exists(place) && !self.is_system(place));
        }
        if reference.next {
            // Where the file itself was found is not known for sure, so every folder that has the name counts.
            let folders: Vec<_> = self.quote.iter().chain(&self.include).copied().collect();
            let roots = folders.into_iter().filter_map(|folder| if let Searched::Root(root) = folder { Some(root) } else { None });
            let places: Vec<_> = roots.map(|root| Place { root, rest: path.to_owned() }).filter(|place| self.exists(place)).collect();
            self.queue.extend(places);
            return None;
        }
        if reference.quoted {
            let own = Place { root: from.root, rest: from.rest.parent().unwrap_or(Path::new("")).join(path) };
            if self.exists(&own) {
                // Only files of the user's are asked for names, so what lies beside one is the user's, even in a folder of `-isystem`.
                let file = self.file(&own).filter(|file| self.plan.is_foreign(file));
                self.plan.own.extend(file.map(PathBuf::into_os_string));
                return Some(own);
            }
            let quote = self.quote.clone();
            match self.search(&quote, path) {
                Found::Here(place) => return Some(place),
                Found::InSystem => return None,
                Found::Nowhere => {}
            }
        }
        if let Some(known) = self.angled.get(name) {
            return known.clone();
        }
        let include: Vec<_> = self.include.iter().chain(&self.systems).copied().collect();
        let found = match self.search(&include, path) {
            Found::Here(place) => Some(place),
            Found::InSystem | Found::Nowhere => None,
        };
        self.angled.insert(name.to_vec(), found.clone());
        found
    }

    fn search(&self, folders: &[Searched], path: &Path) -> Found {
        for folder in folders {
            match *folder {
                Searched::Root(root) => {
                    let place = Place { root, rest: path.to_owned() };
                    if self.exists(&place) {
                        return if self.is_system(&place) { Found::InSystem } else { Found::Here(place) };
                    }
                }
                Searched::System(index) if self.system_folders[index].join(path).is_file() => return Found::InSystem,
                Searched::System(_) => {}
            }
        }
        Found::Nowhere
    }

    /// A forced include: the current folder comes first, then the search as for a quoted name.
    fn forced(&mut self, name: &OsStr) -> Option<Place> {
        if Path::new(name).is_file() {
            // As the preprocessor itself spells what it finds in the current folder.
            let path = if Path::new(name).is_absolute() { PathBuf::from(name) } else { Path::new(".").join(name) };
            return self.named(path.as_os_str()).filter(|place| !self.is_system(place));
        }
        let folders: Vec<_> = self.quote.iter().chain(&self.include).copied().collect();
        if let Found::Here(place) = self.search(&folders, Path::new(name)) { Some(place) } else { None }
    }

    fn exists(&self, place: &Place) -> bool {
        self.root(place.root).join(&place.rest).is_file()
    }

    /// Its path without links.
    fn file(&self, place: &Place) -> Option<PathBuf> {
        self.root(place.root).join(&place.rest).canonicalize().ok()
    }

    fn is_system(&self, place: &Place) -> bool {
        self.plan.is_system(&self.file(place).unwrap_or_default())
    }

    /// Makes folders, links and the prelude.
    fn finish(mut self) -> io::Result<Plan> {
        let tree = self.folder.join("tree");
        let within = |path: &Path| tree.join(path.strip_prefix("/").unwrap_or(path));
        for folder in &self.folders {
            fs::create_dir_all(within(folder))?;
        }
        for (from, to) in &self.links {
            symlink(within(to), within(from))?;
        }
        for (path, target) in &self.files {
            // No links: for a system's headers the preprocessor takes the shorter of a path and where it leads. The time is part of what
            // `#pragma once` goes by, and of `__TIMESTAMP__`.
            let mut file = File::create(within(path))?;
            file.write_all(&self.texts[target])?;
            file.set_modified(fs::metadata(target)?.modified()?)?;
        }
        // The neighbours: files that no source names by its text. A system's header may ask for one where folders are
        // searched. A source in which a macro makes the name may ask for one anywhere.
        let searched: Vec<PathBuf> =
            self.quote.iter().chain(&self.include).chain(&self.systems).filter_map(|folder| self.searched_root(folder)).collect();
        let needs_all = |folder: &Path| self.has_others || searched.iter().any(|root| folder.starts_with(root));
        for folder in self.folders.iter().filter(|folder| needs_all(folder)) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match symlink(&path, within(&path)) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
        }
        for (number, (_, real)) in self.plan.roots.iter().enumerate() {
            let in_tree = within(Path::new(real));
            let target = if in_tree.is_dir() { in_tree } else { PathBuf::from(real) };
            symlink(target, self.folder.join(format!("r{number}")))?;
        }
        let replaced = |folder: &Searched| match *folder {
            // A folder that nothing leads to stays itself.
            Searched::Root(root) => self.folders.contains(Path::new(&self.plan.roots[root].1)).then_some(root),
            Searched::System(_) => None,
        };
        let (quote, include): (Vec<_>, Vec<_>) = (self.quote.iter().map(replaced).collect(), self.include.iter().map(replaced).collect());
        let systems = self.systems.iter().map(replaced).collect();
        if self.plan.has_prelude {
            let options = self.knowledge.settings.options();
            // The same file by two paths is one map.
            let maps: BTreeMap<&str, &SiteMap> =
                self.plan.files.iter().filter_map(|(_, facts)| facts.sites.as_ref()).map(|map| (&*map.hash, map)).collect();
            let rows = host_runtime::rows(maps.values().copied(), &options, self.traits.holds_marks(&options));
            let device = prelude::device_side(&options, self.traits) + &record::packed(maps.values().copied()) + &rows;
            fs::write(self.folder.join(PRELUDE), device)?;
            fs::write(self.folder.join(HOST_PRELUDE), prelude::host_side(options.pausable, self.traits) + &rows)?;
        }
        (self.plan.quote, self.plan.include, self.plan.systems) = (quote, include, systems);
        Ok(self.plan)
    }
}

/// Where a search ended.
enum Found {
    Here(Place),
    InSystem,
    Nowhere,
}
