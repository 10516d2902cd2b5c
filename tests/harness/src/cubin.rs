//! What the harness reads from a cubin: the mangled name of a kernel, and the machine code without the notes around it.

/// Names of the sections of a 64-bit little-endian ELF file with their contents.
fn sections(image: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let word = |at: usize| usize::try_from(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?)).ok();
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?)));
    if image.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count, names) = (word(0x28)?, half(0x3a)?, half(0x3c)?, half(0x3e)?);
    let header = |index: usize| table.checked_add(index.checked_mul(size)?);
    let name_offset = |index: usize| {
        let at = header(index)?;
        Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let is_empty = |index: usize| {
        let at = header(index)? + 4;
        Some(image.get(at..at + 4)? == 8u32.to_le_bytes())
    };
    let contents = |index: usize| {
        let at = header(index)?;
        if is_empty(index)? {
            return Some(&[][..]);
        }
        let offset = word(at + 0x18)?;
        image.get(offset..offset.checked_add(word(at + 0x20)?)?)
    };
    let strings = contents(names)?;
    let mut found = Vec::new();
    for index in 0..count {
        let name = strings.get(name_offset(index)?..)?.split(|&byte| byte == 0).next()?;
        found.push((String::from_utf8_lossy(name).into_owned(), contents(index)?));
    }
    Some(found)
}

/// The mangled name of the kernel called `entry` in the source. Only kernels have a bank of parameters, `.nv.constant0.NAME`.
///
/// # Errors
/// If the image is no cubin, or holds none or several kernels of that name.
pub fn entry_symbol(image: &[u8], entry: &str) -> Result<String, String> {
    let sections = sections(image).ok_or("the image is no cubin")?;
    let kernels: Vec<&str> = sections.iter().filter_map(|(name, _)| name.strip_prefix(".nv.constant0.")).collect();
    let mangled = format!("{}{entry}", entry.len());
    let called = |symbol: &&&str| **symbol == entry || symbol.starts_with("_Z") && part(symbol, &mangled);
    match kernels.iter().filter(called).collect::<Vec<_>>()[..] {
        [symbol] => Ok((*symbol).to_owned()),
        [] => Err(format!("no kernel is called `{entry}`; there are: {}", kernels.join(", "))),
        _ => Err(format!("several kernels are called `{entry}`: {}", kernels.join(", "))),
    }
}

/// Whether a mangled name holds a length and identifier as one part: `4nap` is none of `14napsack_kernel`.
fn part(symbol: &str, mangled: &str) -> bool {
    symbol.match_indices(mangled).any(|(at, _)| !symbol[..at].ends_with(|byte: char| byte.is_ascii_digit()))
}

/// The machine code of all functions: what differs between two builds if anything that runs does.
///
/// # Errors
/// If the image is no cubin.
pub fn code(image: &[u8]) -> Result<Vec<u8>, String> {
    let mut code = Vec::new();
    for (name, contents) in sections(image).ok_or("the image is no cubin")? {
        if name.starts_with(".text.") {
            code.extend_from_slice(name.as_bytes());
            code.extend_from_slice(contents);
        }
    }
    Ok(code)
}

/// The machine code of one function, by its mangled name.
///
/// # Errors
/// If the image is no cubin, or holds no such function.
pub fn function<'a>(image: &'a [u8], symbol: &str) -> Result<&'a [u8], String> {
    let sections = sections(image).ok_or("the image is no cubin")?;
    let found = sections.iter().find(|(name, _)| name.strip_prefix(".text.") == Some(symbol));
    found.map(|(_, code)| *code).ok_or_else(|| format!("there is no function {symbol}"))
}

/// Names of the symbol table's entries that are defined, in order.
///
/// # Errors
/// If the image is no cubin.
pub fn symbols(image: &[u8]) -> Result<Vec<String>, String> {
    let sections = sections(image).ok_or("the image is no cubin")?;
    let contents = |wanted: &str| sections.iter().find(|(name, _)| name == wanted).map_or(&[][..], |(_, contents)| contents);
    let (table, strings) = (contents(".symtab"), contents(".strtab"));
    let mut found = Vec::new();
    for entry in table.chunks_exact(24) {
        let name = u32::from_le_bytes(entry[..4].try_into().map_err(|_| "a symbol is cut off")?) as usize;
        let is_defined = entry[6..8] != [0, 0];
        let name = strings.get(name..).and_then(|rest| rest.split(|&byte| byte == 0).next()).unwrap_or_default();
        if is_defined && !name.is_empty() {
            found.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cubin_is_an_error_and_no_panic() {
        for image in [&b""[..], b"\x7fELF\x02\x01", &[0x7f; 200], b"// PTX"] {
            assert!(entry_symbol(image, "f").is_err() && code(image).is_err() && symbols(image).is_err());
        }
        let mut image = b"\x7fELF\x02\x01".to_vec();
        image.resize(64, 0xff);
        assert!(code(&image).is_err());
    }

    #[test]
    fn a_name_is_a_whole_part_of_a_mangled_name() {
        assert!(part("_Z3napPj", "3nap") && part("_ZN2ns3napIfEEvPT_", "3nap"));
        assert!(!part("_Z13nap_everywhere", "3nap"));
    }
}
