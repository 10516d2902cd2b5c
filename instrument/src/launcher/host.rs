//! One call of the host's compiler, made by nvcc and answered by this program.

use super::error::{Error, NOT_FOUND, SESSION};
use super::marks;
use super::overlay::{Missed, Overlay};
use super::preprocess::Call;
use super::process::{boxed, code_of};
use super::quotes::Notes;
use super::recursion::{self, Stage};
use super::session::Knowledge;
use super::settings::Settings;
use super::translate::Translator;
use super::{cicc, compiler, hook, host_runtime};
use crate::options;
use crate::prelude::{FEW_CALLS, OWN_STOPS, sets_registers};
use crate::project::config;
use crate::project::input::Input;
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of preprocessed text that are looked at together.
const PIECE: usize = 1 << 17;

/// How often a pass is repeated because it read a file that no directive names. Each time at least one more is known.
const ROUNDS: usize = 8;

/// Does the work of the host's compiler if nvcc called this program by that name, and gives the exit code.
///
/// `None` if this is no such call. A program that launches nvcc (the command, or a build script) asks this before anything else.
#[must_use]
pub fn answer() -> Option<u8> {
    let session = PathBuf::from(env::var_os(SESSION)?);
    let mut arguments = env::args_os();
    let program = PathBuf::from(arguments.next()?);
    let name = program.file_name()?.to_owned();
    if name == hook::CICC && session.join(hook::FOLDER).join(&name).is_symlink() {
        let work = || cicc::answer(&session, &Knowledge::read(&session)?, arguments.collect());
        return Some(done(work()));
    }
    let in_host_folder = program.parent() == Some(&session.join("host"));
    if !in_host_folder && !session.join("bin").join(&name).is_symlink() {
        return None;
    }
    let work = || -> Result<u8, Error> {
        let knowledge = Knowledge::read(&session)?;
        let search_path = without(&session.join("bin"), &env::var_os("PATH").unwrap_or_default());
        let real = if in_host_folder {
            knowledge.host_folder.as_ref().map(|folder| Path::new(folder).join(&name))
        } else {
            env::split_paths(&search_path).map(|folder| folder.join(&name)).find(|path| compiler::is_program(path))
        };
        let real = real.ok_or_else(|| {
            let help = "install it, or name another host compiler with -ccbin";
            Error { code: NOT_FOUND, ..Error::new(format!("the host compiler `{}` is not on PATH", name.display()), help) }
        })?;
        let compiler = HostCompiler { name: if in_host_folder { real.clone().into() } else { name.clone() }, path: real, search_path };
        let call = Call::read(arguments.collect())?;
        match call {
            Call::Other(arguments) => compiler.step(&session, &knowledge, &arguments),
            // There is nothing to rewrite; the compiler has the words for it.
            Call::Cuda(call) if !Path::new(&call.main).is_file() => {
                // Builds ask compilers for their features with nothing to compile.
                if call.main == "/dev/null" {
                    mark_reached(&session);
                }
                Err(compiler.replace_this_process(call.words()))
            }
            Call::Cuda(call) if knowledge.settings.pass == options::Pass::Ptx => compiler.plain(&knowledge.settings, &call),
            Call::Cuda(call) => {
                mark_reached(&session);
                compiler.preprocess(&session, &knowledge, &call)
            }
        }
    };
    Some(done(work()))
}

/// The exit code; an error is printed.
fn done(result: Result<u8, Error>) -> u8 {
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        error.code
    })
}

/// The search path without one folder.
fn without(folder: &Path, search_path: &OsStr) -> OsString {
    let kept = env::split_paths(search_path).filter(|entry| entry != folder);
    env::join_paths(kept).unwrap_or_else(|_| search_path.to_owned())
}

/// The compiler that nvcc meant.
struct HostCompiler {
    path: PathBuf,
    /// What it is told that it is called.
    name: OsString,
    search_path: OsString,
}

impl HostCompiler {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        // What it starts itself is no business of ours.
        command.arg0(&self.name).env("PATH", &self.search_path).env_remove(SESSION);
        command
    }

    /// Becomes it. Comes back only with the reason why not.
    fn replace_this_process(&self, arguments: &[OsString]) -> Error {
        self.cannot_start(&self.command().args(arguments).exec())
    }

    /// Does a step that reads no CUDA source.
    fn step(&self, session: &Path, knowledge: &Knowledge, arguments: &[OsString]) -> Result<u8, Error> {
        let Some(words) = host_runtime::in_front(session, arguments)? else { return Err(self.replace_this_process(arguments)) };
        if Stage::of(session) == Stage::Settled {
            let (words, object) = recursion::to_session(session, words);
            let status = self.command().args(words).status().map_err(|error| self.cannot_start(&error))?;
            if !status.success() {
                remove(&object);
            }
            // What this compilation was for is there, or can't be had.
            return Ok(code_of(status).max(1));
        }
        match recursion::decide(session, knowledge, arguments)? {
            recursion::Decision::Compile => Err(self.replace_this_process(&words)),
            recursion::Decision::Done(code) => Ok(code),
        }
    }

    fn cannot_start(&self, error: &io::Error) -> Error {
        let help = "see whether it runs by itself, or name another host compiler with -ccbin";
        Error { code: NOT_FOUND, ..Error::new(format!("the host compiler `{}` can't be started: {error}", self.path.display()), help) }
    }

    /// Preprocesses source as it is. What nvcc itself was asked for begins with the number of the settings, since objects depend on them.
    fn plain(&self, settings: &Settings, call: &super::preprocess::Cuda) -> Result<u8, Error> {
        if !call.is_answer {
            let Some(output) = call.output.as_ref().filter(|_| configuration(settings, call).is_some()) else {
                return Err(self.replace_this_process(call.words()));
            };
            let status = self.command().args(call.words()).status().map_err(|error| self.cannot_start(&error))?;
            if status.success() {
                name_configuration(settings, call, Path::new(output))?;
            }
            return Ok(code_of(status));
        }
        let path = call.output.as_ref().map_or_else(|| PathBuf::from("/dev/stdout"), PathBuf::from);
        let failed = |error: io::Error| Error::io("can't write", &path, &error);
        let child = self.command().args(call.words_without_output()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| self.cannot_start(&error))?;
        let mut output: Box<dyn Write> = match &call.output {
            Some(path) => Box::new(File::create(path).map_err(failed)?),
            None => Box::new(io::stdout()),
        };
        let copied = output.write_all(for_caches(settings).as_bytes()).and_then(|()| match &mut child.stdout {
            Some(text) => io::copy(text, &mut output).and_then(|_| output.flush()),
            None => Ok(()),
        });
        let status = child.wait().map_err(failed)?;
        match copied {
            // A reader that takes only the beginning has what it wants.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error)),
            _ => Ok(code_of(status)),
        }
    }

    /// Preprocesses rewritten source.
    fn preprocess(&self, session: &Path, knowledge: &Knowledge, call: &super::preprocess::Cuda) -> Result<u8, Error> {
        let mut missed: Vec<Missed> = Vec::new();
        let mut early: Vec<OsString> = Vec::new();
        let device = call.output.as_ref().filter(|_| call.is_device_step());
        let stage = Stage::of(session);
        let mut own_stops = false;
        for round in 1.. {
            let overlay = Overlay::open(session, knowledge, call, &missed, &early)?;
            let head = if call.is_answer { for_caches(&knowledge.settings) } else { String::new() };
            let polled = if device.is_some() { overlay.plan.polled_calls() } else { 0 };
            let marks = polled > 0 && stage == Stage::Marked;
            let macros = [marks.then(|| recursion::MARKS.to_owned()), own_stops.then(|| format!("-D{OWN_STOPS}=1"))];
            let pass = self.pass(&overlay, call, &head, &macros)?;
            let new: Vec<Missed> = overlay.missed(&pass.names, call).into_iter().filter(|file| !missed.contains(file)).collect();
            let before = overlay.rewritten_among(&pass.early);
            if pass.code == 0 && !(new.is_empty() && before.is_empty()) && round < ROUNDS {
                missed.extend(new);
                early.extend(before);
                continue;
            }
            // Polls at calls are too many to have a stop each.
            let are_few = || polled <= FEW_CALLS || marks || recursion::needless(session).is_some();
            if pass.code == 0 && device.is_some() && pass.sets_registers && !own_stops && are_few() {
                own_stops = true;
                continue;
            }
            self.say(&pass, call)?;
            if device.is_some() {
                pass.notes.keep(session)?;
            }
            let refused = overlay.say(&pass.names, knowledge, !new.is_empty())?;
            if refused || pass.code != 0 {
                if let Some(output) = &call.output {
                    remove(Path::new(output));
                }
                return Ok(pass.code.max(1));
            }
            if let Some(output) = call.output.as_ref().filter(|_| !call.is_answer) {
                name_configuration(&knowledge.settings, call, Path::new(output))?;
            }
            match (device, stage) {
                (Some(_), Stage::Marked) => recursion::note_pass(session, marks)?,
                (Some(output), Stage::Settled) => recursion::settle(session, Path::new(output))?,
                _ => {}
            }
            if call.output.is_none() {
                let path = overlay.stdout();
                let mut file = File::open(&path).map_err(|error| Error::io("can't read", &path, &error))?;
                let mut out = io::stdout();
                match io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
                    // A reader of the beginning alone has what it wants.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        let help = "what is there of the text is not all of it";
                        return Err(Error::new(format!("can't write to standard output: {error}"), help));
                    }
                    _ => {}
                }
            }
            return Ok(0);
        }
        unreachable!("the last round returns")
    }

    /// Prints a pass's messages. What reads the overlay quotes its text, so the user's own text is read once more for them.
    fn say(&self, pass: &Pass, call: &super::preprocess::Cuda) -> Result<(), Error> {
        // A second pass must write nothing else.
        let writes = |word: &OsString| {
            [&b"-MD"[..], b"-MMD", b"-MF", b"-save-temps", b"-Wp,"].iter().any(|option| word.as_bytes().starts_with(option))
        };
        if !pass.stderr.is_empty() && !call.for_host && !call.words().iter().any(writes) {
            let mut command = self.command();
            command.args(call.words_without_output()).args(["-o", "/dev/null"]);
            let status = command.status().map_err(|error| self.cannot_start(&error))?;
            if code_of(status) == pass.code {
                return Ok(());
            }
        }
        // Output whose reader has gone does not matter.
        let _ = io::stderr().write_all(&pass.stderr);
        Ok(())
    }

    fn pass(&self, overlay: &Overlay, call: &super::preprocess::Cuda, head: &str, macros: &[Option<String>]) -> Result<Pass, Error> {
        let path = call.output.as_ref().map_or_else(|| overlay.stdout(), PathBuf::from);
        let failed = |error: &io::Error| Error::io("can't write", &path, error);
        let mut output = File::create(&path).map_err(|error| failed(&error))?;
        let mut command = self.command();
        command
            .args(call.arguments(overlay))
            .args(macros.iter().flatten())
            .env_remove("CPATH")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.cannot_start(&error))?;
        let translator = overlay.translator();
        let stderr = child.stderr.take().map(boxed);
        let messages = std::thread::spawn(move || {
            let mut text = Vec::new();
            // Cut short, it is still what there was to read.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            text
        });
        let prelude = overlay.prelude().filter(|_| !call.for_host);
        let names = match child.stdout.take() {
            Some(stdout) => output.write_all(head.as_bytes()).and_then(|()| copy(stdout, &mut output, &translator, prelude.as_deref())),
            None => Ok(Named::default()),
        };
        let names = names.and_then(|names| output.flush().map(|()| names));
        if names.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| failed(&error))?;
        let stderr = messages.join().unwrap_or_default();
        let Named { all: names, early, sets_registers, notes } = names.map_err(|error| {
            remove(&path);
            failed(&error)
        })?;
        Ok(Pass { code: code_of(status), stderr: marks::take(&translator.message(&stderr)).0, names, early, sets_registers, notes })
    }
}

/// What stands in front of preprocessed text, for caches of objects: a hash of the settings, which the text alone need
/// not show. In its direct mode ccache goes by the sources and headers alone, and these say nothing of the settings.
/// The second line names no real file, and so keeps ccache from that mode.
fn for_caches(settings: &Settings) -> String {
    format!("# 1 \"<{}>\"\n# 1 \"/dev/null\" 3\n", settings.version_line())
}

/// The configuration that holds for the source of a call.
fn configuration(settings: &Settings, call: &super::preprocess::Cuda) -> Option<PathBuf> {
    let found = || config::find(&Input::new(Path::new(&call.main)).folder()?);
    settings.config.as_ref().map(|path| super::process::absolute(path)).or_else(found)
}

/// Names the configuration at the end of preprocessed text, as a file that was included: nvcc's dependency files list what is named there, and a build
/// compiles anew where the configuration changes.
fn name_configuration(settings: &Settings, call: &super::preprocess::Cuda, output: &Path) -> Result<(), Error> {
    let Some(path) = configuration(settings, call) else { return Ok(()) };
    let (path, main) = (path.to_string_lossy().into_owned(), call.main.to_string_lossy());
    if path.contains(['"', '\\', '\n']) || main.contains(['"', '\\', '\n']) {
        return Ok(());
    }
    let appended = fs::OpenOptions::new().append(true).open(output);
    let appended = appended.and_then(|mut file| file.write_all(format!("\n# 1 \"{path}\" 1\n# 1 \"{main}\" 2\n").as_bytes()));
    appended.map_err(|error| Error::io("can't write", output, &error))
}

/// Removes an output that is not to be read. A device or a pipe is no output that could be removed.
fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// What one run of the preprocessor gave.
struct Pass {
    code: u8,
    stderr: Vec<u8>,
    /// Files that it read, by the names in its line markers before translation, with whether they are a system's.
    names: BTreeSet<(Vec<u8>, bool)>,
    /// Those of them that it read before the prelude.
    early: BTreeSet<(Vec<u8>, bool)>,
    /// Whether its text asks for registers for a group of warps.
    sets_registers: bool,
    /// Where our text stands in its lines.
    notes: Notes,
}

/// Files that preprocessed text names, and what else its reader notes.
#[derive(Default)]
struct Named {
    all: BTreeSet<(Vec<u8>, bool)>,
    early: BTreeSet<(Vec<u8>, bool)>,
    sets_registers: bool,
    notes: Notes,
}

/// Tells the launch that its compiler was asked. Where this can't be written, the call is in trouble anyway and says so.
fn mark_reached(session: &Path) {
    let _ = File::create(session.join("reached"));
}

/// Writes lines of preprocessed text with the user's paths in them, and notes where in them our text stands.
fn write_own(text: &[u8], to: &mut impl Write, translator: &Translator, notes: &mut Notes) -> io::Result<()> {
    if !marks::are_in(text) {
        return translator.preprocessed(text, to);
    }
    let mut translated = Vec::with_capacity(text.len());
    translator.preprocessed(text, &mut translated)?;
    let (text, lines) = marks::take(&translated);
    notes.add(&text, &lines);
    to.write_all(&text)
}

/// Copies preprocessed text with the user's paths in it, and takes note of the files that it names. Whole lines at a time: no path goes beyond one, and
/// memory for all of the text at once would cost the system more than the copy.
fn copy(mut from: impl Read, to: &mut impl Write, translator: &Translator, prelude: Option<&Path>) -> io::Result<Named> {
    let mut names = Named::default();
    let mut prelude = prelude.map(|path| memchr::memmem::Finder::new(path.as_os_str().as_bytes()));
    let mut text = vec![0; PIECE];
    let mut filled = 0;
    loop {
        if filled == text.len() {
            text.resize(2 * filled, 0);
        }
        let count = match from.read(&mut text[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        filled += count;
        let whole = match memchr::memrchr(b'\n', &text[..filled]) {
            _ if count == 0 => filled,
            Some(last) if filled == text.len() => last + 1,
            // A pipe gives little at a time, and a piece of few lines is hardly worth its search.
            _ => continue,
        };
        write_own(&text[..whole], to, translator, &mut names.notes)?;
        if let Some(finder) = &prelude {
            let begins = finder.find(&text[..whole]);
            names.early.extend(Translator::line_markers(&text[..begins.unwrap_or(whole)]));
            if begins.is_some() {
                prelude = None;
            }
        }
        names.all.extend(Translator::line_markers(&text[..whole]));
        names.sets_registers = names.sets_registers || sets_registers(&text[..whole]);
        text.copy_within(whole..filled, 0);
        filled -= whole;
        if count == 0 {
            return Ok(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_translated_wherever_a_piece_of_the_text_ends() {
        let translator = Translator::new(b"/v", vec![b"own/".to_vec()]);
        let mut text = Vec::new();
        while text.len() < 3 * PIECE {
            text.extend_from_slice(format!("# {} \"/v/r0/a{}.h\" 1\nint x{0};\n", text.len(), text.len() % 7).as_bytes());
        }
        // A line that is longer than a piece, and one without an end.
        text.extend(std::iter::repeat_n(b'x', 2 * PIECE));
        text.extend_from_slice(b" \"/v/r0/b.h\"\n# 9 \"/v/r0/last.h\"");
        let mut out = Vec::new();
        let names = copy(&text[..], &mut out, &translator, None).expect("a vector takes it").all;
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&text).replace("/v/r0/", "own/"));
        assert_eq!(names.len(), 8, "{names:?}");
    }

    /// Fails once in each of these ways before it gives the text.
    struct Failing<'a>(Vec<io::ErrorKind>, &'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.pop().map_or_else(|| self.1.read(into), |kind| Err(kind.into()))
        }
    }

    #[test]
    fn a_signal_interrupts_no_copy_and_other_failures_end_it() {
        let translator = Translator::new(b"/v", vec![b"own/".to_vec()]);
        let copied = |kinds: &[io::ErrorKind]| {
            let mut out = Vec::new();
            copy(Failing(kinds.to_vec(), b"int x;\n"), &mut out, &translator, None).map(|_| out).map_err(|error| error.kind())
        };
        assert_eq!(copied(&[io::ErrorKind::Interrupted; 2]).as_deref(), Ok(&b"int x;\n"[..]));
        assert_eq!(copied(&[io::ErrorKind::BrokenPipe]), Err(io::ErrorKind::BrokenPipe));
    }
}
