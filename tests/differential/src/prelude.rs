//! The real prelude, ready for the host's compiler: the few functions that are made of PTX get other bodies, by name, and nothing else is
//! touched.

/// Functions that speak PTX, each with the body that stands for it on the host. `$0` is the first parameter's name, `$1` the second's.
const PRIMITIVES: &[(&str, &str)] = &[
    ("__cuinstr_load", "return host_word($0);"),
    ("__cuinstr_load_near", "return host_word($0);"),
    ("__cuinstr_now", "return host_now();"),
    ("__cuinstr_cycles", "return host_now();"),
    ("__cuinstr_tag", "return 0x6375696e73747231ull;"),
    ("__cuinstr_left_word", "return 1ull;"),
    ("__cuinstr_tell_left", ""),
    ("__cuinstr_forget_left", ""),
    ("__cuinstr_barrier", "(void)$0;"),
    ("__cuinstr_barrier_here", "(void)$0;"),
    ("__cuinstr_phase", "return 5u;"),
    ("__cuinstr_lend", "(void)$0;"),
    ("__cuinstr_claim_start", "return atomicCAS(&cuinstr_control_v1.__ci_start_ns, 0ull, $0);"),
    ("__cuinstr_share", "unsigned int power = 0u; while ($1 >> power > 1u) ++power; return ($0 >> power) + 1u;"),
    ("__cuinstr_some", "return $0;"),
    ("__cuinstr_same", "return $0;"),
    ("__cuinstr_number", "return cuinstr_control_v1.__ci_launch;"),
    ("__cuinstr_read_launch", "$0 = cuinstr_control_v1.__ci_launch; $1 = cuinstr_control_v1.__ci_flag;"),
    ("__cuinstr_fits", "return $0 / $1;"),
    ("__cuinstr_power", "unsigned int power = 0u; while (1u << power < $0) ++power; return power;"),
    ("__cuinstr_no_more", "return $0 < __cuinstr_most ? $0 : __cuinstr_most;"),
    ("__cuinstr_within", "return $0 < 1u ? 1u : $0 < __cuinstr_most ? $0 : __cuinstr_most;"),
    ("__cuinstr_few", "return $0 < 1u ? 1u : $0 < __cuinstr_near ? $0 : __cuinstr_near;"),
    ("__cuinstr_near_signed", "return $0 < -256 ? -256 : $0 > 256 ? 256 : $0;"),
    ("__cuinstr_near_unsigned", "return $0 < 512 ? $0 : 512;"),
    ("__cuinstr_any", "return $0;"),
    ("__cuinstr_mark_call", "(void)$0;"),
    ("__cuinstr_decide", "return __cuinstr_request();"),
    ("__cuinstr_decline", "(void)$0;"),
    ("__cuinstr_stop", "host_stop($0, $1);"),
    ("__cuinstr_renew", "__cuinstr_renew_at_length($0, $1, $2);"),
    (
        "__cuinstr_ask_last",
        "if (__cuinstr_due(__cuinstr_asked_near()) == 0u) return; if (cuinstr_control_v1.__ci_action == 0u) __cuinstr_stop($0, 1u); __cuinstr_record()->__ci_late = $1;",
    ),
];

/// How the primitives read a word: only one of 32 bits can be the flag.
const WORDS: &str = "inline unsigned int host_word(const unsigned int* word) { return host_look(word); }\n\
    inline unsigned long long host_word(const unsigned long long* word) { return *word; }\n";

/// Macros that speak PTX.
const MACROS: &[(&str, &str)] = &[
    ("__cuinstr_leave()", "host_leave()"),
    ("__cuinstr_leave_if_told(__cuinstr_site)", ""),
    ("__cuinstr_leave_if_left(__cuinstr_sure, __cuinstr_site, __cuinstr_where, __cuinstr_mark)", ""),
];

/// What the test knows of the control block beside the ABI.
const HOOKS: &str = "void host_arm(unsigned int launch, unsigned long long fuel) {\n\
    \x20 cuinstr_control_v1.__ci_launch = launch;\n\
    \x20 cuinstr_control_v1.__ci_action = 1u;\n\
    \x20 cuinstr_control_v1.__ci_fuel = fuel;\n\
    \x20 cuinstr_control_v1.__ci_count_fuel = 1u;\n\
    \x20 cuinstr_control_v1.__ci_own_record = {};\n\
    }\n\
    const unsigned int* host_flag() { return cuinstr_control_v1.__ci_flag; }\n\
    unsigned int host_launch() { return cuinstr_control_v1.__ci_launch; }\n\
    unsigned long long host_fuel_used() { return cuinstr_control_v1.__ci_own_record.__ci_fuel_used; }\n";

/// What stands for the hooks in front of programs that were not rewritten.
pub const NO_HOOKS: &str = "void host_arm(unsigned int, unsigned long long) {}\n\
    const unsigned int* host_flag() { return nullptr; }\n\
    unsigned int host_launch() { return 0u; }\n\
    unsigned long long host_fuel_used() { return 0ull; }\n";

/// The prelude without what names one file, so that it can stand in front of many programs.
#[must_use]
pub fn shared(prelude: &str) -> &str {
    prelude.find("static __device__ __attribute__((__used__)) const char __cuinstr_sites_").map_or(prelude, |at| &prelude[..at])
}

/// The prelude of a rewritten file for a GPU, where each strong load of the flag is reported to the test: that is what a look is, in whatever
/// function it stands.
///
/// # Errors
/// If the prelude has no such load any more.
pub fn watched(prelude: &str) -> Result<String, String> {
    let mut text = shared(prelude).to_owned();
    let load = find_definition(&text, "__cuinstr_load", 0).ok_or("the prelude has no function __cuinstr_load any more")?;
    let [word] = &load.parameters[..] else { return Err("__cuinstr_load takes more than a word's address".to_owned()) };
    text.insert_str(load.open, &format!(" if ({word} == cuinstr_control_v1.__ci_flag) gpu_looked();"));
    // The one look that is assembly as a whole.
    let renew = find_definition(&text, "__cuinstr_renew", 0).ok_or("the prelude has no function __cuinstr_renew any more")?;
    text.insert_str(renew.open, " gpu_looked();");
    Ok(text)
}

/// The prelude of a rewritten file as host C++.
///
/// # Errors
/// If a primitive is not in it any more, or assembly is left in it: then `PRIMITIVES` needs a line.
pub fn on_host(prelude: &str) -> Result<String, String> {
    let mut text = shared(prelude).to_owned();
    for (name, body) in PRIMITIVES {
        let mut from = 0;
        let mut found = 0;
        while let Some(definition) = find_definition(&text, name, from) {
            let mut body = (*body).to_owned();
            for (index, parameter) in definition.parameters.iter().enumerate() {
                body = body.replace(&format!("${index}"), parameter);
            }
            text.replace_range(definition.open..definition.close, &format!(" {body} "));
            from = definition.open + body.len();
            found += 1;
        }
        if found == 0 {
            return Err(format!("the prelude has no function {name} any more: what it is replaced by on the host needs another name"));
        }
    }
    for (name, value) in MACROS {
        let start = text.find(&format!("#define {name}")).ok_or_else(|| format!("the prelude has no macro {name} any more"))?;
        let mut end = start;
        for line in text[start..].split_inclusive('\n') {
            end += line.len();
            if !line.trim_end().ends_with('\\') {
                break;
            }
        }
        text.replace_range(start..end, &format!("#define {name} {value}\n"));
    }
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        // Empty assembly, which hides a value from the optimiser or keeps it from moving things, does the same on any machine.
        let is_empty = ["asm(\"\" :", "asm volatile(\"\")"].iter().any(|empty| code.contains(empty));
        if (code.contains("asm(") || code.contains("asm volatile")) && !is_empty {
            return Err(format!("line {} of the prelude holds assembly that nothing replaces on the host: {line}", index + 1));
        }
    }
    Ok(format!("{WORDS}{text}{HOOKS}"))
}

/// A function's definition: between its braces, and the names of its parameters.
struct Definition {
    open: usize,
    close: usize,
    parameters: Vec<String>,
}

fn find_definition(text: &str, name: &str, from: usize) -> Option<Definition> {
    let mut at = from;
    loop {
        let start = at + text[at..].find(name)?;
        let after = start + name.len();
        at = after;
        let is_name = text[after..].starts_with('(') && text[..start].ends_with(' ');
        let close_list = after + text[after..].find(')')?;
        if !is_name || !text[close_list + 1..].starts_with(" {") {
            continue;
        }
        // A call in front of a block would look the same; a definition stands in its line with its type in front.
        let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        if !text[line..start].contains("__device__") && !text[line..start].contains("__cuinstr_device") {
            continue;
        }
        let list = &text[after + 1..close_list];
        let is_part = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let parameters =
            list.split(',').filter_map(|one| one.trim().rsplit(|byte: char| !is_part(byte)).next()).map(str::to_owned).collect();
        let open = close_list + 3;
        let mut depth = 1;
        for (offset, byte) in text[open..].char_indices() {
            match byte {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(Definition { open, close: open + offset, parameters });
            }
        }
        return None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primitive_gets_another_body_and_nothing_else_changes() {
        let text = "static __device__ int f(const int* word) {\n  int x = 1;\n  { asm(\"\"); }\n  return x;\n}\nint g() { return f(0); }\n";
        let found = find_definition(text, "f", 0).expect("it is defined");
        assert_eq!(
            (&text[found.open..found.open + 4], &text[found.close..=found.close], found.parameters),
            ("\n  i", "}", vec!["word".into()])
        );
        assert!(find_definition(text, "f", found.close).is_none());
    }

    #[test]
    fn assembly_that_nothing_replaces_is_refused() {
        let source = b"__global__ void k(int* p) { while (*p) { } }\n";
        let rewrite = cuinstr::rewrite(source, &cuinstr::options::Options { path: "k.cu".to_owned(), ..Default::default() });
        let output = String::from_utf8(rewrite.output.expect("it is rewritten")).expect("it is text");
        let prelude = &output[..output.find("#line").expect("the prelude ends")];
        let host = on_host(prelude).expect("all of it is replaced");
        assert!(!host.contains("globaltimer") && host.contains("host_leave()"));
        let more = format!("{prelude}\nstatic __device__ void more() {{ asm volatile(\"exit;\"); }}\n");
        let more = more.replace("static __device__ __attribute__((__used__)) const char __cuinstr_sites_", "static const char sites_");
        assert!(on_host(&more).is_err_and(|why| why.contains("assembly")));
    }
}
