//! What the files of a translation unit say of names, for the rewriting of each of them.

use super::unit_macros;
use crate::options::{DeviceMacro, Options, Polls, Space, UnitMacro, ValueMacro};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::{Lexed, is_name_byte, lex};
use crate::source::syntax::{condition, definition, keyword, macro_values, macros, plain_macros, splice};
use crate::source::unit_cycles::{self, Role};
use crate::source::unit_loops;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What is known of a unit's names.
#[derive(Default)]
pub(super) struct UnitNames {
    /// Macros of the translation unit's files that mark device functions in others of them.
    shared_macros: Vec<DeviceMacro>,
    /// Macros of its files that open no loop.
    plain_macros: HashSet<Vec<u8>>,
    /// Macros of its files that stand for values, and names in capitals that none of them defines.
    value_macros: Vec<ValueMacro>,
    /// Names of unmarked functions that device code of its files uses, and names of all device functions.
    device_names: BTreeSet<Vec<u8>>,
    device_functions: BTreeSet<Vec<u8>>,
    /// All of its macros.
    unit_macros: Vec<UnitMacro>,
    /// What its files are to each other, by their texts.
    roles: HashMap<Vec<u8>, Role>,
    /// The polls that still hold, where one of its files, or the command line, makes a macro of a word of the language.
    polls: Polls,
}

impl UnitNames {
    /// Learns from the macros of the unit's files. Which mark functions, so that a function is known by a macro of
    /// another file? Which open no loop? Which stand for values? `defined` holds what the command line defines, as
    /// text. `foreign` files stay as they are, and only their macros count. Files have the names that others include them by.
    pub(super) fn learn(&mut self, unit: &[(&str, &[u8])], foreign: &[Vec<u8>], defined: &[u8], options: &Options) {
        let joined: Vec<_> = unit.iter().map(|(_, bytes)| splice::join(bytes)).collect();
        let files: Vec<(&[u8], Lexed)> = joined.iter().map(|joined| read(&joined.text)).collect();
        let command_line = lex(defined, 0..defined.len(), false);
        let words: BTreeSet<&[u8]> = files.iter().flat_map(|(bytes, _)| bytes.split(|byte| !is_name_byte(*byte))).collect();
        let texts = files.iter().map(|(bytes, lexed)| (*bytes, lexed)).chain([(defined, &command_line)]);
        let redefined = texts.map(|(bytes, lexed)| keyword::redefined(bytes, lexed).polls);
        self.polls = redefined.fold(Polls::default(), keyword::plainest);
        self.plain_macros = plain_macros::plain(&files).into_iter().map(String::into_bytes).collect();
        let unchanged: Vec<(&[u8], Lexed)> = foreign.iter().map(|bytes| read(bytes)).chain([(defined, command_line)]).collect();
        let marking: Vec<_> = unchanged.iter().chain(&files).map(|(bytes, lexed)| (*bytes, lexed)).collect();
        self.value_macros = macro_values::of_files(&marking, Some(&words));
        // A macro may stand for one of a file that comes later.
        for _ in 0..3 {
            let mut known: BTreeMap<String, Option<Space>> = BTreeMap::new();
            let options = Options { device_macros: self.shared_macros.clone(), ..options.clone() };
            for (bytes, lexed) in &marking {
                for (name, space) in macros::definitions(bytes, lexed, &options) {
                    // Where another file gives the name another meaning, what it marks may run on the host as well.
                    known.entry(name).and_modify(|other| *other = both(*other, space)).or_insert(space);
                }
            }
            let found: Vec<_> = known.into_iter().filter_map(|(name, space)| Some(DeviceMacro { name, space: space? })).collect();
            if found == self.shared_macros {
                break;
            }
            self.shared_macros = found;
        }
        self.learn_names(&files, options);
        let names = |names: &BTreeSet<Vec<u8>>| names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let options = Options {
            device_macros: self.shared_macros.clone(),
            device_names: names(&self.device_names),
            device_functions: names(&self.device_functions),
            value_macros: self.value_macros.clone(),
            in_unit: true,
            ..options.clone()
        };
        let loops = unit_loops::of_macros(&marking, &options);
        self.unit_macros = unit_macros::of_unit(&files, &unchanged, &self.value_macros, &loops, &options);
        let texts: Vec<(&str, &[u8])> = unit.iter().zip(&files).map(|((name, _), (text, _))| (*name, *text)).collect();
        let bytes = unit.iter().map(|(_, bytes)| bytes.to_vec());
        self.roles = bytes.zip(unit_cycles::roles(&texts, &options)).filter(|(_, role)| *role != Role::default()).collect();
    }

    /// Learns which names device code of any file uses that another file gives to a function without a mark.
    fn learn_names(&mut self, files: &[(&[u8], Lexed)], options: &Options) {
        let fragments: Vec<_> = files.iter().filter_map(|(bytes, lexed)| Some((*bytes, lexed, Fragment::of_file(lexed).ok()?))).collect();
        loop {
            let text = |names: &BTreeSet<Vec<u8>>| names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            let options = Options { device_macros: self.shared_macros.clone(), device_names: text(&self.device_names), ..options.clone() };
            let names: Vec<_> = fragments
                .iter()
                .map(|(bytes, lexed, file)| definition::names(bytes, file, &Macros::read(bytes, lexed, &options), &options))
                .collect();
            let unmarked: BTreeSet<&Vec<u8>> = names.iter().flat_map(|names| &names.unmarked).collect();
            let used = names.iter().flat_map(|names| &names.used).filter(|name| unmarked.contains(name)).cloned().collect();
            self.device_functions = names.iter().flat_map(|names| names.device.iter().cloned()).collect();
            if std::mem::replace(&mut self.device_names, used) == self.device_names {
                return;
            }
        }
    }

    /// Tells the options for one file what the unit says of the names in its text.
    pub(super) fn tell(&self, bytes: &[u8], options: &mut Options) {
        let shared_macros = self.shared_macros.iter().filter(|shared| options.device_macros.iter().all(|own| own.name != shared.name));
        let shared_macros: Vec<_> =
            shared_macros.filter(|shared| memchr::memmem::find(bytes, shared.name.as_bytes()).is_some()).cloned().collect();
        options.device_macros.extend(shared_macros);
        let words: BTreeSet<&[u8]> = bytes.split(|byte| !is_name_byte(*byte)).filter(|word| !word.is_empty()).collect();
        let plain = words.iter().filter(|word| self.plain_macros.contains(**word));
        options.plain_macros = plain.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let among = |names: &BTreeSet<Vec<u8>>| {
            let named = words.iter().filter(|word| names.contains(**word));
            named.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        };
        options.device_names = among(&self.device_names);
        options.device_functions = among(&self.device_functions);
        options.in_unit = true;
        let Role { entered, is_piece } = self.roles.get(bytes).cloned().unwrap_or_default();
        (options.entered, options.is_piece) = (entered.into_iter().collect(), is_piece);
        options.polls = keyword::plainest(options.polls, self.polls);
        options.unit_macros = self.unit_macros.iter().filter(|one| words.contains(one.name.as_bytes())).cloned().collect();
        let values = self.value_macros.iter().filter(|value| words.contains(value.name.as_bytes()));
        options.value_macros = values.cloned().collect();
    }
}

fn read(bytes: &[u8]) -> (&[u8], Lexed) {
    (bytes, condition::read(bytes))
}

/// What a name marks that two files define.
fn both(one: Option<Space>, other: Option<Space>) -> Option<Space> {
    match (one, other) {
        (None, None) => None,
        (one, other) if one == other => one,
        (Some(Space::Kernel), _) | (_, Some(Space::Kernel)) => Some(Space::Kernel),
        _ => Some(Space::HostDevice),
    }
}
