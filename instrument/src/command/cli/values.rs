//! What stands behind options, read from text.

use cuinstr::diagnostic::Code;
use cuinstr::duration;
use cuinstr::nearest::nearest;
use cuinstr::options::{DeviceMacro, GivenMacro, PollGap};
use cuinstr::project::config::{is_identifier, space_of};

/// A time within [`PollGap::RANGE`].
pub(super) fn poll_gap(text: &str) -> Result<PollGap, String> {
    PollGap::from_nanoseconds(duration::parse(text)?).ok_or_else(|| "between 2us and 10ms".to_owned())
}

/// A diagnostic code.
pub(super) fn code(text: &str) -> Result<Code, String> {
    let id = text.to_ascii_uppercase();
    let known = || Code::ALL.iter().map(|code| code.id());
    Code::from_id(&id).ok_or_else(|| match nearest(&id, known()).or_else(|| known().next_back()) {
        Some(near) => format!("no such code; the nearest is {near}, and `cuinstr explain` lists them"),
        None => "no such code".to_owned(),
    })
}

/// `NAME` or `NAME=VALUE`; without a value it stands for 1, as compilers have it.
pub(super) fn given_macro(text: &str) -> Result<GivenMacro, String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let given = no_macro(name)?;
    Ok(GivenMacro { value: Some(value.to_owned()), ..given })
}

/// `NAME`, which nothing defines.
pub(super) fn no_macro(name: &str) -> Result<GivenMacro, String> {
    if is_identifier(name) { Ok(GivenMacro { name: name.to_owned(), value: None }) } else { Err(format!("`{name}` is no name of a macro")) }
}

/// `NAME=SPACE`.
pub(super) fn device_macro(text: &str) -> Result<DeviceMacro, String> {
    let (name, space) = text.split_once('=').ok_or("write NAME=device, NAME=kernel or NAME=host-device")?;
    if !is_identifier(name) {
        return Err(format!("`{name}` is no name of a macro"));
    }
    let space = space_of(space).ok_or_else(|| format!("`{space}` is none of device, kernel, host-device"))?;
    Ok(DeviceMacro { name: name.to_owned(), space })
}
