//! The Rust side of an image: text that names its kernels, so that a name that is spelled wrong does not compile.

use cuinstr_image::Kernel;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Words that can't name a function, not even as `r#word`.
const NEVER_RAW: [&str; 5] = ["_", "crate", "self", "super", "Self"];

/// Methods of the type that hides its own kernels' if they bear the same name.
const OWN: [&str; 1] = ["load"];

/// The items of `OUT_DIR/NAME.rs`, for any crate: the bytes, and a constant for each kernel.
pub(super) fn constants(source: &Path, image: &Path, kernels: &[Kernel]) -> String {
    let mut text = format!(
        "/// What nvcc made of `{}`.\npub static IMAGE: &[u8] = include_bytes!({:?});\n/// Names of the kernels, as the driver knows them.\npub mod kernel {{\n",
        source.display(),
        image.display().to_string()
    );
    for (name, kernel) in named(kernels) {
        let _ = writeln!(text, "    /// `{}`.\n    pub const {}: &str = {:?};", kernel.signature, name.to_ascii_uppercase(), kernel.symbol);
    }
    text.push_str("}\n");
    text
}

/// The items of `OUT_DIR/NAME.module.rs`, for `cuinstr_runtime::include_module!`: a type with a method for each kernel.
pub(super) fn module(source: &Path, kernels: &[Kernel]) -> String {
    let source = source.display();
    let mut text = format!(
        "/// What nvcc made of `{source}`, loaded into a context.\n\
         #[derive(Debug, Clone)]\n\
         pub struct Module(cuinstr_runtime::Module);\n\n\
         impl Module {{\n    \
             /// Loads it. Reports show the lines of the source as long as the package's folder is where it was compiled.\n    \
             ///\n    \
             /// # Errors\n    \
             /// As `cuinstr_runtime::Module::load`.\n    \
             pub fn load(context: &std::sync::Arc<cuinstr_runtime::cudarc::driver::CudaContext>) -> cuinstr_runtime::Result<Self> {{\n        \
                 let folder = cuinstr_runtime::sources::Folder(env!(\"CARGO_MANIFEST_DIR\").into());\n        \
                 cuinstr_runtime::Module::load_with(context, IMAGE, folder).map(Self)\n    \
             }}\n"
    );
    for (name, kernel) in named(kernels) {
        let method = method(&name);
        let _ = write!(
            text,
            "\n    /// Kernel `{}`.\n    ///\n    /// # Errors\n    /// If the driver fails.\n    \
             pub fn {method}(&self) -> cuinstr_runtime::Result<cuinstr_runtime::Kernel> {{\n        self.0.kernel({:?})\n    }}\n",
            kernel.signature, kernel.symbol
        );
    }
    text.push_str(
        "}\n\nimpl std::ops::Deref for Module {\n    type Target = cuinstr_runtime::Module;\n\n    fn deref(&self) -> &Self::Target {\n        &self.0\n    }\n}\n",
    );
    text
}

/// Each kernel with an identifier of its own: its name without namespaces' colons and templates' brackets, or its symbol where that is not its alone.
fn named(kernels: &[Kernel]) -> Vec<(String, &Kernel)> {
    let names: Vec<String> = kernels.iter().map(|kernel| identifier(&kernel.name)).collect();
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let alike = names.iter().filter(|name| name.eq_ignore_ascii_case(&names[index])).count();
        let mut name = if alike == 1 { names[index].clone() } else { identifier(&kernel.symbol) };
        // Constants are told apart by their letters alone, whatever their case.
        while !taken.insert(name.to_ascii_uppercase()) {
            name.push('_');
        }
        found.push((name, kernel));
    }
    found
}

/// Letters, digits and single underscores between them.
fn identifier(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() => text.push(c),
            '_' => text.push('_'),
            _ if !text.is_empty() && !text.ends_with('_') => text.push('_'),
            _ => {}
        }
    }
    let text = if name.ends_with('_') { text.as_str() } else { text.trim_end_matches('_') };
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text.to_owned() }
}

/// The name as a method's.
fn method(name: &str) -> String {
    if NEVER_RAW.contains(&name) || OWN.contains(&name) { format!("{name}_") } else { format!("r#{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(symbols: &[&str]) -> Vec<String> {
        let kernels: Vec<Kernel> = symbols.iter().map(|symbol| Kernel::new(symbol)).collect();
        named(&kernels).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn kernels_are_named_as_they_are_declared() {
        assert_eq!(
            names(&["halve", "_ZN2ns4gemmIfLi16EEEvPT_i", "_Z11sgemm_tiledPKfS0_Pfiii"]),
            ["halve", "ns_gemm_float_16", "sgemm_tiled"]
        );
        assert_eq!(names(&["__private_", "_"]), ["__private_", "_"]);
    }

    #[test]
    fn no_two_kernels_share_a_name() {
        // Two overloads, and two names that differ by case alone.
        assert_eq!(names(&["_Z5scalePfi", "_Z5scalePdi", "other"]), ["_Z5scalePfi", "_Z5scalePdi", "other"]);
        assert_eq!(names(&["run", "RUN"]), ["run", "RUN_"]);
    }

    #[test]
    fn what_rust_keeps_for_itself_is_spelled_so_that_it_compiles() {
        let text = module(Path::new("a.cu"), &[Kernel::new("match"), Kernel::new("self"), Kernel::new("load")]);
        for method in ["pub fn r#match(&self)", "pub fn self_(&self)", "pub fn load_(&self)"] {
            assert!(text.contains(method), "{text}");
        }
        assert!(text.contains("self.0.kernel(\"match\")"));
    }

    #[test]
    fn constants_hold_what_the_driver_asks_for() {
        let text = constants(Path::new("a b.cu"), Path::new("/out \"x\"/a.ptx"), &[Kernel::new("_ZN2ns4gemmIfLi16EEEvPT_i")]);
        assert!(text.contains("include_bytes!(\"/out \\\"x\\\"/a.ptx\")"), "{text}");
        assert!(text.contains("pub const NS_GEMM_FLOAT_16: &str = \"_ZN2ns4gemmIfLi16EEEvPT_i\";"), "{text}");
    }
}
