//! Lists the functions and loops of a CUDA source as clang's front end sees them, after preprocessing.
//!
//! libclang is found at run time (`LIBCLANG_PATH`, `llvm-config`, the usual folders); without it [`parse`] says so. Everything that calls it
//! is in here: the rest of the workspace gets plain data.

use clang_sys::{
    CXChildVisit_Continue, CXChildVisit_Recurse, CXChildVisitResult, CXClientData, CXCursor, CXCursor_CUDADeviceAttr,
    CXCursor_CUDAGlobalAttr, CXCursor_CXXForRangeStmt, CXCursor_CXXMethod, CXCursor_CallExpr, CXCursor_Constructor,
    CXCursor_ConversionFunction, CXCursor_DeclRefExpr, CXCursor_Destructor, CXCursor_DoStmt, CXCursor_ForStmt, CXCursor_FunctionDecl,
    CXCursor_FunctionTemplate, CXCursor_GotoStmt, CXCursor_LabelRef, CXCursor_LambdaExpr, CXCursor_MemberRefExpr, CXCursor_WhileStmt,
    CXDiagnostic_Error, CXErrorCode, CXEval_Int, CXFile, CXIndex, CXSourceLocation, CXString, CXToken, CXTranslationUnit,
    CXTranslationUnit_KeepGoing, CXUnsavedFile,
};
use std::ffi::{CStr, CString, c_char, c_uint, c_ulong};
use std::fmt;
use std::ptr;

/// What to parse, and how.
#[derive(Debug, Clone, Default)]
pub struct Unit {
    /// The source.
    pub path: String,
    /// Arguments as for `clang`, without the source.
    pub args: Vec<String>,
    /// Files that are to be there whether they are or not: path and text.
    pub files: Vec<(String, String)>,
}

/// A place in a source: path as clang spells it, line and column from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Path.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column in bytes.
    pub column: u32,
}

/// What kind of loop it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `for`.
    For,
    /// `for (x : range)`.
    RangeFor,
    /// `while`.
    While,
    /// `do … while`.
    Do,
    /// A `goto` to a label above it.
    Goto,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Its kind.
    pub kind: Kind,
    /// Where its text stands: in a macro's body, if it comes from one.
    pub written: Place,
    /// Where it comes to stand: where the macro is used.
    pub expanded: Place,
    /// `do … while (0)`, which never comes round.
    pub runs_once: bool,
}

/// A function with a body; a template counts once. A lambda is a function of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name; empty for a lambda.
    pub name: String,
    /// clang's name for it across translation units.
    pub usr: String,
    /// Whether it is marked as `__device__` or `__global__`, or is a lambda in such a function.
    pub is_device: bool,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// The file that it stands in, as clang spells it.
    pub file: String,
    /// Whether it stands in a header that clang takes for the system's: by its folder, or because it says so itself (`#pragma GCC system_header`).
    pub is_system: bool,
    /// Its loops, in order.
    pub loops: Vec<Loop>,
    /// Functions that it names, by `usr`; what depends on a template's parameter is not among them.
    pub names: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// clang's version, in its own words.
    pub version: String,
    /// Functions in order.
    pub functions: Vec<Function>,
    /// Errors that clang reported. What they concern may be missing from the functions.
    pub errors: Vec<String>,
}

/// Why nothing was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// There is no libclang, or it can't be loaded.
    NoLibrary(String),
    /// clang did not take the source or the arguments at all.
    NotParsed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary(why) => write!(out, "libclang can't be loaded: {why}"),
            Self::NotParsed(why) => write!(out, "clang can't parse this: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// Where libclang was found.
///
/// # Errors
/// If there is none.
pub fn find() -> Result<std::path::PathBuf, Error> {
    if !clang_sys::is_loaded() {
        clang_sys::load().map_err(Error::NoLibrary)?;
    }
    clang_sys::get_library().map(|library| library.path().to_owned()).ok_or_else(|| Error::NoLibrary("it is gone again".to_owned()))
}

/// Parses a source and lists its functions.
///
/// # Errors
/// If there is no libclang, or if it takes no part of the source.
pub fn parse(unit: &Unit) -> Result<Parsed, Error> {
    find()?;
    let no_zero = |text: &str| CString::new(text).map_err(|_| Error::NotParsed(format!("`{text}` holds a zero byte")));
    let path = no_zero(&unit.path)?;
    let args = unit.args.iter().map(|arg| no_zero(arg)).collect::<Result<Vec<_>, _>>()?;
    let args: Vec<*const c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    let files = unit.files.iter().map(|(path, text)| Ok((no_zero(path)?, no_zero(text)?))).collect::<Result<Vec<_>, Error>>()?;
    let mut unsaved: Vec<CXUnsavedFile> = files
        .iter()
        .map(|(path, text)| CXUnsavedFile { Filename: path.as_ptr(), Contents: text.as_ptr(), Length: text.as_bytes().len() as c_ulong })
        .collect();
    // SAFETY: the library is loaded; an index made without options is given back below.
    let index = Index(unsafe { clang_sys::clang_createIndex(0, 0) });
    let mut raw: CXTranslationUnit = ptr::null_mut();
    // SAFETY: path, arguments and files outlive the call, their lengths are theirs, and `raw` is a place for the result.
    let code: CXErrorCode = unsafe {
        clang_sys::clang_parseTranslationUnit2(
            index.0,
            path.as_ptr(),
            args.as_ptr(),
            i32::try_from(args.len()).unwrap_or(i32::MAX),
            unsaved.as_mut_ptr(),
            unsaved.len() as c_uint,
            CXTranslationUnit_KeepGoing,
            &raw mut raw,
        )
    };
    if code != 0 || raw.is_null() {
        return Err(Error::NotParsed(format!("error {code} of libclang for `{}`", unit.path)));
    }
    let translated = Translated(raw);
    // SAFETY: the library is loaded.
    let version = text(unsafe { clang_sys::clang_getClangVersion() });
    let mut walk = Walk { unit: raw, functions: Vec::new(), current: None };
    // SAFETY: the unit lives until `translated` is dropped.
    let root = unsafe { clang_sys::clang_getTranslationUnitCursor(raw) };
    walk.children(root);
    let errors = translated.errors();
    Ok(Parsed { version, functions: walk.functions, errors })
}

/// An index, given back when it goes.
struct Index(CXIndex);

impl Drop for Index {
    fn drop(&mut self) {
        // SAFETY: it was made by `clang_createIndex` and is given back once.
        unsafe { clang_sys::clang_disposeIndex(self.0) }
    }
}

/// A parsed source, given back when it goes.
struct Translated(CXTranslationUnit);

impl Translated {
    fn errors(&self) -> Vec<String> {
        // SAFETY: the unit is alive.
        let count = unsafe { clang_sys::clang_getNumDiagnostics(self.0) };
        let error = |index: c_uint| {
            // SAFETY: the index is below their number, and each diagnostic is given back once.
            unsafe {
                let diagnostic = clang_sys::clang_getDiagnostic(self.0, index);
                let severity = clang_sys::clang_getDiagnosticSeverity(diagnostic);
                let options = clang_sys::clang_defaultDiagnosticDisplayOptions();
                let message = text(clang_sys::clang_formatDiagnostic(diagnostic, options));
                clang_sys::clang_disposeDiagnostic(diagnostic);
                (severity >= CXDiagnostic_Error).then_some(message)
            }
        };
        (0..count).filter_map(error).collect()
    }
}

impl Drop for Translated {
    fn drop(&mut self) {
        // SAFETY: it was made by `clang_parseTranslationUnit2` and is given back once.
        unsafe { clang_sys::clang_disposeTranslationUnit(self.0) }
    }
}

/// The string's text; the string is given back.
fn text(string: CXString) -> String {
    // SAFETY: it comes from a function of the library, which ends it with a zero byte, and is given back once.
    unsafe {
        let text = clang_sys::clang_getCString(string);
        let owned = if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() };
        clang_sys::clang_disposeString(string);
        owned
    }
}

/// One of the functions that say where a location is.
type Locate = unsafe fn(CXSourceLocation, *mut CXFile, *mut c_uint, *mut c_uint, *mut c_uint);

fn place(location: CXSourceLocation, locate: Locate) -> Place {
    let (mut file, mut line, mut column): (CXFile, c_uint, c_uint) = (ptr::null_mut(), 0, 0);
    // SAFETY: each pointer leads to a place for one result; no offset is asked for.
    unsafe { locate(location, &raw mut file, &raw mut line, &raw mut column, ptr::null_mut()) };
    // SAFETY: the file is one of the unit's, if it is any.
    let file = if file.is_null() { String::new() } else { text(unsafe { clang_sys::clang_getFileName(file) }) };
    Place { file, line, column }
}

/// Collects functions.
struct Walk {
    unit: CXTranslationUnit,
    functions: Vec<Function>,
    /// The function around.
    current: Option<usize>,
}

impl Walk {
    fn children(&mut self, cursor: CXCursor) {
        // SAFETY: the visitor gets this very `Walk` back, which nobody else uses until the visit is over.
        unsafe { clang_sys::clang_visitChildren(cursor, visit, ptr::from_mut(self).cast()) };
    }

    #[expect(non_upper_case_globals, reason = "libclang's names")]
    fn visit(&mut self, cursor: CXCursor) -> CXChildVisitResult {
        // SAFETY: here and below, cursors come from the unit that is being visited.
        let kind = unsafe { clang_sys::clang_getCursorKind(cursor) };
        if is_function(kind) {
            self.function(cursor, kind == CXCursor_LambdaExpr);
            return CXChildVisit_Continue;
        }
        let Some(current) = self.current else { return CXChildVisit_Recurse };
        let found = match kind {
            CXCursor_CUDADeviceAttr => {
                self.functions[current].is_device = true;
                None
            }
            CXCursor_CUDAGlobalAttr => {
                self.functions[current].is_device = true;
                self.functions[current].is_kernel = true;
                None
            }
            CXCursor_ForStmt => Some(Kind::For),
            CXCursor_CXXForRangeStmt => Some(Kind::RangeFor),
            CXCursor_WhileStmt => Some(Kind::While),
            CXCursor_DoStmt => Some(Kind::Do),
            CXCursor_GotoStmt => is_backward(cursor).then_some(Kind::Goto),
            CXCursor_CallExpr | CXCursor_DeclRefExpr | CXCursor_MemberRefExpr => {
                self.functions[current].names.extend(named(cursor));
                None
            }
            _ => None,
        };
        if let Some(kind) = found {
            // SAFETY: see above.
            let location = unsafe { clang_sys::clang_getCursorLocation(cursor) };
            let written = place(location, clang_sys::clang_getSpellingLocation);
            let expanded = place(location, clang_sys::clang_getExpansionLocation);
            let runs_once = kind == Kind::Do && is_zero(last_child(cursor));
            self.functions[current].loops.push(Loop { kind, written, expanded, runs_once });
        }
        CXChildVisit_Recurse
    }

    fn function(&mut self, cursor: CXCursor, is_lambda: bool) {
        // SAFETY: the cursor comes from the unit that is being visited.
        let (location, is_definition) =
            unsafe { (clang_sys::clang_getCursorLocation(cursor), clang_sys::clang_isCursorDefinition(cursor) != 0) };
        if !is_definition && !is_lambda {
            return;
        }
        let around = self.current.map(|at| &self.functions[at]);
        let is_device = is_lambda && (around.is_some_and(|around| around.is_device) || self.says_device(cursor));
        let function = Function {
            // SAFETY: see above.
            name: if is_lambda { String::new() } else { text(unsafe { clang_sys::clang_getCursorSpelling(cursor) }) },
            // SAFETY: see above.
            usr: text(unsafe { clang_sys::clang_getCursorUSR(cursor) }),
            is_device,
            is_kernel: false,
            file: place(location, clang_sys::clang_getExpansionLocation).file,
            // SAFETY: see above.
            is_system: unsafe { clang_sys::clang_Location_isInSystemHeader(location) != 0 },
            loops: Vec::new(),
            names: Vec::new(),
        };
        let before = self.current.replace(self.functions.len());
        self.functions.push(function);
        self.children(cursor);
        // What names a function that a lambda stands in names the lambda, too.
        if is_lambda && let Some(at) = before {
            let own = self.functions[self.current.unwrap_or(at)].clone();
            self.functions[at].names.extend(own.names);
        }
        self.current = before;
    }

    /// Whether a lambda's head says `__device__`. clang keeps the attribute where cursors do not lead.
    fn says_device(&self, cursor: CXCursor) -> bool {
        let mut tokens: *mut CXToken = ptr::null_mut();
        let mut count: c_uint = 0;
        // SAFETY: the tokens are read while the unit is alive, up to their number, and given back once.
        unsafe {
            clang_sys::clang_tokenize(self.unit, clang_sys::clang_getCursorExtent(cursor), &raw mut tokens, &raw mut count);
            let mut says = false;
            for at in 0..count as usize {
                let word = text(clang_sys::clang_getTokenSpelling(self.unit, *tokens.add(at)));
                says |= word == "__device__";
                if word == "{" {
                    break;
                }
            }
            clang_sys::clang_disposeTokens(self.unit, tokens, count);
            says
        }
    }
}

#[expect(non_upper_case_globals, reason = "libclang's names")]
fn is_function(kind: i32) -> bool {
    matches!(
        kind,
        CXCursor_FunctionDecl
            | CXCursor_CXXMethod
            | CXCursor_Constructor
            | CXCursor_Destructor
            | CXCursor_ConversionFunction
            | CXCursor_FunctionTemplate
            | CXCursor_LambdaExpr
    )
}

/// The function that an expression names, by `usr`; a template for what is made of one.
fn named(cursor: CXCursor) -> Option<String> {
    // SAFETY: the cursor comes from a unit that is being visited, and so do those that it leads to.
    unsafe {
        let target = clang_sys::clang_getCursorReferenced(cursor);
        if clang_sys::clang_Cursor_isNull(target) != 0 || !is_function(clang_sys::clang_getCursorKind(target)) {
            return None;
        }
        let template = clang_sys::clang_getSpecializedCursorTemplate(target);
        let target = if clang_sys::clang_Cursor_isNull(template) == 0 { template } else { target };
        Some(text(clang_sys::clang_getCursorUSR(target)))
    }
}

/// A cursor's last child: the condition of a `do`.
fn last_child(cursor: CXCursor) -> Option<CXCursor> {
    let mut last: Option<CXCursor> = None;
    // SAFETY: the visitor writes where the pointer leads, which is this frame's own.
    unsafe { clang_sys::clang_visitChildren(cursor, keep_last, (&raw mut last).cast()) };
    last
}

extern "C" fn keep_last(cursor: CXCursor, _: CXCursor, data: CXClientData) -> CXChildVisitResult {
    // SAFETY: `last_child` passes a pointer to its own variable.
    unsafe { *data.cast::<Option<CXCursor>>() = Some(cursor) };
    CXChildVisit_Continue
}

/// Whether an expression is the constant 0, or `false`.
fn is_zero(cursor: Option<CXCursor>) -> bool {
    let Some(cursor) = cursor else { return false };
    // SAFETY: the cursor comes from the unit that is being visited; a result that is one is given back once.
    unsafe {
        let result = clang_sys::clang_Cursor_Evaluate(cursor);
        if result.is_null() {
            return false;
        }
        let is_zero = clang_sys::clang_EvalResult_getKind(result) == CXEval_Int && clang_sys::clang_EvalResult_getAsInt(result) == 0;
        clang_sys::clang_EvalResult_dispose(result);
        is_zero
    }
}

/// Whether a `goto` leads to a label above it.
fn is_backward(cursor: CXCursor) -> bool {
    let mut label: Option<CXSourceLocation> = None;
    // SAFETY: the visitor writes where the pointer leads, which is this frame's own.
    unsafe { clang_sys::clang_visitChildren(cursor, find_label, (&raw mut label).cast()) };
    // SAFETY: the cursor comes from the unit that is being visited.
    let own = place(unsafe { clang_sys::clang_getCursorLocation(cursor) }, clang_sys::clang_getExpansionLocation);
    label.is_some_and(|label| {
        let label = place(label, clang_sys::clang_getExpansionLocation);
        label.file == own.file && (label.line, label.column) <= (own.line, own.column)
    })
}

extern "C" fn find_label(cursor: CXCursor, _: CXCursor, data: CXClientData) -> CXChildVisitResult {
    // SAFETY: `is_backward` passes a pointer to its own variable, and the cursor comes from the unit that is being visited.
    unsafe {
        if clang_sys::clang_getCursorKind(cursor) == CXCursor_LabelRef {
            let target = clang_sys::clang_getCursorReferenced(cursor);
            *data.cast::<Option<CXSourceLocation>>() = Some(clang_sys::clang_getCursorLocation(target));
        }
    }
    CXChildVisit_Continue
}

extern "C" fn visit(cursor: CXCursor, _: CXCursor, data: CXClientData) -> CXChildVisitResult {
    // SAFETY: `Walk::children` passes itself, and uses nothing of it until the visit is over.
    let walk = unsafe { &mut *data.cast::<Walk>() };
    walk.visit(cursor)
}
